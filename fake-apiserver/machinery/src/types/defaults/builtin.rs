//! Walking a built-in object and filling in the defaults of the table and of each group's code.

use super::{apps, autoscaling, batch, core, named_groups, pod, table};
use crate::types::Quantity;
use crate::types::decode::item_of;
use crate::types::schema::{Defaults, Kind, Object, Schema};
use shared_json::{Map, Name, Value};

/// Fills in the defaults of a value and all its parts, from the outside in.
///
/// A part's defaults follow from the part itself and from those around it, never from the contents of a sibling. A part that
/// shares memory with `old`, after those around it have given it their defaults, has its own already.
pub(super) fn apply(schema: &Schema, value: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.is_same(value)) {
        return;
    }
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) if holds_amounts(object) => {
            map.values_mut().for_each(round_up);
        }
        (Kind::Object(object), Value::Object(map)) => {
            if let Some(name) = &schema.name {
                fill(table::short(name), object, map, old);
            }
            let old = old.and_then(Value::as_object);
            for (index, (field, value)) in map.iter_mut().enumerate() {
                if let Some(child) = child(object, field, value) {
                    apply(child, value, old.and_then(|old| old.get_named(field, index)));
                }
            }
        }
        (Kind::Array(array), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                let old = item_of(old, index, item);
                apply(&array.items, item, old);
            }
        }
        _ => {}
    }
}

/// Whether an object is a map of amounts of resources.
fn holds_amounts(object: &Object) -> bool {
    let values = object.additional.as_ref();
    values.is_some_and(|values| matches!(values.kind, Kind::Quantity))
}

/// The type of a field's value, if that has parts.
fn child<'s>(object: &'s Object, field: &Name, value: &Value) -> Option<&'s Schema> {
    if !value.is_object() && !value.is_array() {
        return None;
    }
    let declared = object.fields.named(field).map(|field| &*field.schema);
    declared.or(object.additional.as_deref())
}

/// Amounts of resources are kept to the thousandth.
fn round_up(amount: &mut Value) {
    if let Some(rounded) = Quantity::of(amount).in_thousandths() {
        *amount = Value::from(rounded.canonical());
    }
}

/// Whether [`apply`] may change anything, without copying the parts that it leaves as they are.
pub(super) fn needs(schema: &Schema, value: &Value, old: Option<&Value>) -> bool {
    if old.is_some_and(|old| old.is_same(value)) {
        return false;
    }
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) if holds_amounts(object) => map
            .values()
            .any(|amount| Quantity::of(amount).in_thousandths().is_some()),
        (Kind::Object(object), Value::Object(map)) => {
            if let Some(name) = &schema.name {
                let mut filled = map.clone();
                fill(table::short(name), object, &mut filled, old);
                if !filled.is_same(map) {
                    return true;
                }
            }
            let old = old.and_then(Value::as_object);
            map.iter().enumerate().any(|(index, (field, value))| {
                child(object, field, value)
                    .is_some_and(|child| needs(child, value, old.and_then(|old| old.get_named(field, index))))
            })
        }
        (Kind::Array(array), Value::Array(items)) => items
            .iter()
            .enumerate()
            .any(|(index, item)| needs(&array.items, item, item_of(old, index, item))),
        _ => false,
    }
}

fn fill(name: &str, object: &Object, map: &mut Map, old: Option<&Value>) {
    let defaults = object.defaults.get_or_init(|| {
        let declared = object.fields.iter();
        let declared = declared.filter_map(|(name, field)| Some((name.clone(), field.default.clone()?)));
        Defaults {
            rows: table::of(name),
            declared: declared.collect(),
        }
    });
    for (path, value) in defaults.rows {
        if let [field] = path.as_slice()
            && map
                .get(*field)
                .is_some_and(|value| value.as_str() == Some("") || value.as_i64() == Some(0))
            && object.fields.get(field).is_some_and(|field| !field.pointer)
        {
            // What Go does not hold behind a pointer is unset when it is empty.
            map.remove(*field);
        }
        set(map, path, value);
    }
    for (field, default) in &defaults.declared {
        if map.get_named(field, 0).is_none_or(Value::is_null) {
            map.insert(field, default.clone());
        }
    }
    let (group, kind) = name.split_once('.').unwrap_or(("", name));
    match group {
        "core" => match kind {
            // It is all about the specification.
            "v1.Pod"
                if old
                    .and_then(|old| old.get("spec"))
                    .is_some_and(|old| map.get("spec").is_some_and(|spec| spec.is_same(old))) => {}
            "v1.Pod" | "v1.PodSpec" | "v1.Container" | "v1.EphemeralContainer" | "v1.Volume" => {
                pod::fill(kind, map)
            }
            _ => core::fill(kind, map),
        },
        "apps" => apps::fill(kind, map),
        "batch" => batch::fill(kind, map),
        "autoscaling" => autoscaling::fill(kind, map),
        _ => named_groups::fill(name, map),
    }
}

/// Sets a field that is missing or null. The objects on the way are made.
pub(super) fn set(map: &mut Map, path: &[&str], value: &Value) {
    match path {
        [] => {}
        [field] if unset(map, field) => {
            map.insert(*field, value.clone());
        }
        // What is set may be shared with other versions, and stays so.
        [field, rest @ ..] if !is_set(map.get(*field), rest) => {
            let slot = map.entry(*field).or_insert(Value::Null);
            if slot.is_null() {
                *slot = Value::Object(Map::new());
            }
            if let Some(inner) = slot.as_object_mut() {
                set(inner, rest, value);
            }
        }
        _ => {}
    }
}

/// Whether there is something other than null at the end of a path.
fn is_set(value: Option<&Value>, path: &[&str]) -> bool {
    let end = value.and_then(|value| path.iter().try_fold(value, |value, field| value.get(*field)));
    end.is_some_and(|value| !value.is_null())
}

/// Whether a field is missing or null.
pub(super) fn unset(map: &Map, field: &str) -> bool {
    map.get(field).is_none_or(Value::is_null)
}

/// The text of a field, empty if there is none.
pub(super) fn text<'m>(map: &'m Map, field: &str) -> &'m str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The object in a field.
pub(super) fn object<'m>(map: &'m mut Map, field: &str) -> Option<&'m mut Map> {
    map.get_mut(field).and_then(Value::as_object_mut)
}
