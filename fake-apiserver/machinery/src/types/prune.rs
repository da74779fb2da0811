//! Dropping fields that a type does not declare, and naming them.

use std::fmt::Write as _;

use super::builtin::object_meta;
use super::decode::{Either, item_of};
use super::schema::{Kind, Object, Schema};
use shared_json::{Array, Map, Value};

impl Schema {
    /// Drops every field that the type does not declare, and returns their paths as the server names them
    /// (`spec.template.spec.containers[0].foo`), sorted by name within each object; keys of maps are written like fields.
    ///
    /// Fields are kept where the type says `x-kubernetes-preserve-unknown-fields`, but their declared parts are pruned. An embedded
    /// resource keeps `apiVersion`, `kind` and `metadata`. Pruning twice changes nothing more.
    pub fn prune(&self, value: &mut Value) -> Vec<String> {
        self.prune_changed(value, None)
    }

    /// The same, except for parts that share memory with `old`, which was pruned.
    pub fn prune_changed(&self, value: &mut Value, old: Option<&Value>) -> Vec<String> {
        // Nearly always all is known, and nothing need be copied to see that.
        if is_known(self, value, old, self.name.is_none()) {
            return Vec::new();
        }
        let mut unknown = Unknown {
            custom: self.name.is_none(),
            ..Unknown::default()
        };
        prune(self, value, old, &mut String::new(), &mut unknown);
        unknown.paths.append(&mut unknown.in_embedded_metadata);
        unknown.paths
    }

    /// The same; says whether anything goes that is not metadata of an embedded resource.
    pub(super) fn drops(&self, value: &mut Value) -> bool {
        let mut unknown = Unknown {
            custom: self.name.is_none(),
            ..Unknown::default()
        };
        prune(self, value, None, &mut String::new(), &mut unknown);
        !unknown.paths.is_empty()
    }
}

/// Whether a custom resource's schema declares the fields in a value of another type: only if it preserves unknown fields.
fn declares_others(kind: &Kind) -> bool {
    match kind {
        Kind::IntOrString | Kind::String | Kind::Integer | Kind::Number | Kind::Boolean | Kind::Array(_) => {
            false
        }
        Kind::Object(object) => object.preserve_unknown,
        _ => true,
    }
}

/// Whether a value has fields, itself or in its items.
fn has_fields(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(has_fields),
        _ => false,
    }
}

/// Drops all fields of a value of which nothing is declared.
fn prune_undeclared(value: &mut Value, path: &mut String, unknown: &mut Unknown) {
    match value {
        Value::Object(map) => {
            let names = map.keys().map(|name| format!("{path}.{name}"));
            unknown.paths.extend(names);
            map.clear();
        }
        Value::Array(items) => each_item(items.iter_mut(), path, |_, item, path| {
            prune_undeclared(item, path, unknown);
        }),
        _ => {}
    }
}

/// Goes through items with the path of each.
fn each_item<'a>(
    items: impl Iterator<Item = &'a mut Value>,
    path: &mut String,
    mut look: impl FnMut(usize, &'a mut Value, &mut String),
) {
    let length = path.len();
    for (index, item) in items.enumerate() {
        // Writing into a text cannot fail.
        let _infallible = write!(path, "[{index}]");
        look(index, item, path);
        path.truncate(length);
    }
}

/// The paths of undeclared fields. The metadata of embedded resources is pruned last, and reported last.
#[derive(Default)]
struct Unknown {
    /// Whether it is a custom resource.
    custom: bool,
    paths: Vec<String>,
    in_embedded_metadata: Vec<String>,
}

/// The schemas in a place that holds one, or a list of them, or whether there may be anything.
fn schemas_in(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().map_or(&[][..], Array::as_slice);
    items.iter().chain(value.is_object().then_some(value))
}

fn schemas_in_mut(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter_mut()),
        value => Box::new(std::iter::once(value)),
    }
}

/// Whether a type declares all fields of a value. Parts that share memory with `old` are known.
fn is_known(schema: &Schema, value: &Value, old: Option<&Value>, custom: bool) -> bool {
    if old.is_some_and(|old| old.is_same(value)) {
        return true;
    }
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            let old = old.and_then(Value::as_object);
            map.iter().enumerate().all(|(index, (name, value))| {
                let old = || old.and_then(|old| old.get_named(name, index));
                if let Some(field) = object.fields.named(name) {
                    match Either::of(&field.schema) {
                        Some(_) => schemas_in(value).all(|part| is_known(schema, part, None, custom)),
                        None => is_known(&field.schema, value, old(), custom),
                    }
                } else if object.embedded_resource && name == "metadata" {
                    is_known(&object_meta(), value, old(), false)
                } else if object.embedded_resource && (name == "apiVersion" || name == "kind") {
                    true
                } else if let Some(values) = &object.additional {
                    is_known(values, value, old(), custom)
                } else {
                    object.preserve_unknown
                }
            })
        }
        (Kind::Array(array), Value::Array(items)) => items
            .iter()
            .enumerate()
            .all(|(index, item)| is_known(&array.items, item, item_of(old, index, item), custom)),
        (kind, value) => !custom || declares_others(kind) || !has_fields(value),
    }
}

fn prune(schema: &Schema, value: &mut Value, old: Option<&Value>, path: &mut String, unknown: &mut Unknown) {
    if old.is_some_and(|old| old.is_same(value)) {
        return;
    }
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            // A schema in a place where something else may stand decodes itself, and says nothing of what it does not know.
            let places = map.iter_mut().filter(|(name, _)| {
                let field = object.fields.named(name);
                field.is_some_and(|field| Either::of(&field.schema).is_some())
            });
            for part in places.flat_map(|(_, value)| schemas_in_mut(value)) {
                prune(schema, part, None, &mut String::new(), &mut Unknown::default());
            }
            prune_object(object, map, old, path, unknown);
        }
        (Kind::Array(array), Value::Array(items)) => {
            each_item(items.iter_mut(), path, |index, item, path| {
                let old = item_of(old, index, item);
                prune(&array.items, item, old, path, unknown);
            });
        }
        (kind, value) if unknown.custom && !declares_others(kind) => prune_undeclared(value, path, unknown),
        _ => {}
    }
}

fn prune_object(
    object: &Object,
    map: &mut Map,
    old: Option<&Value>,
    path: &mut String,
    unknown: &mut Unknown,
) {
    let length = path.len();
    let mut dropped = Vec::new();
    let old = old.and_then(Value::as_object);
    for (index, (name, value)) in map.iter_mut().enumerate() {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        let old = old.and_then(|old| old.get_named(name, index));
        if let Some(field) = object.fields.named(name) {
            prune(&field.schema, value, old, path, unknown);
        } else if object.embedded_resource && name == "metadata" {
            let mut found = Unknown::default();
            prune(&object_meta(), value, old, path, &mut found);
            unknown.in_embedded_metadata.append(&mut found.paths);
        } else if object.embedded_resource && (name == "apiVersion" || name == "kind") {
        } else if let Some(values) = &object.additional {
            prune(values, value, old, path, unknown);
        } else if !object.preserve_unknown {
            unknown.paths.push(path.clone());
            dropped.push(name.clone());
        }
        path.truncate(length);
    }
    for name in dropped {
        map.remove(&name);
    }
}
