//! Merging objects, with the directives that stand among their fields.

use super::list::{self, ListMerge};
use crate::patch::PatchError;
use crate::patch::print::{go_print, go_type};
use crate::types::{Field, Schema};
use shared_json::{Array, Map, Value};

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges the fields of `patch` into `target`. Without a type, maps merge and lists are replaced.
pub(super) fn merge(target: &mut Map, patch: &Map, schema: Option<&Schema>) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return replace_or_delete(target, patch, directive);
    }
    retain_keys(target, patch)?;
    let ordered = set_orders(target, patch, schema)?;
    for (name, value) in patch {
        if name == RETAIN_KEYS || name.starts_with(SET_ORDER) || ordered.contains(&name.as_str()) {
            continue;
        }
        match name.strip_prefix(DELETE_FROM) {
            Some(list) => delete_from(target, list, value),
            None => merge_field(target, name, value, schema)?,
        }
    }
    Ok(())
}

/// Whether merging removes a field from a patch: a field that it has followed as a whole.
pub(super) fn is_taken(patch: &Map, name: &str) -> bool {
    let is_ordered = || patch.keys().any(|key| key.strip_prefix(SET_ORDER) == Some(name));
    name == RETAIN_KEYS || name.starts_with(SET_ORDER) || is_ordered()
}

fn replace_or_delete(target: &mut Map, patch: &Map, directive: &Value) -> Result<(), PatchError> {
    match directive.as_str() {
        Some("replace") => {
            *target = patch.clone();
            target.remove(DIRECTIVE);
            Ok(())
        }
        Some("delete") => {
            target.clear();
            Ok(())
        }
        _ => Err(unknown_directive(directive, patch)),
    }
}

pub(super) fn unknown_directive(directive: &Value, patch: &Map) -> PatchError {
    let patch = go_print(&Value::Object(patch.clone()));
    PatchError::Internal(format!(
        "unknown patch type: {} in map: {patch}",
        go_print(directive)
    ))
}

fn wrong_argument(expected: &Value, found: &Value) -> PatchError {
    PatchError::Internal(format!(
        "expected a {}, but received a {}",
        go_type(expected),
        go_type(found)
    ))
}

/// `$retainKeys` drops every field it does not list, and must list every field the patch sets.
fn retain_keys(target: &mut Map, patch: &Map) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let keys = keys.as_array().ok_or_else(bad)?;
    let listed = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let mut set = patch.iter().filter(|(name, value)| {
        !value.is_null()
            && *name != RETAIN_KEYS
            && !name.starts_with(DELETE_FROM)
            && !name.starts_with(SET_ORDER)
    });
    if !set.all(|(name, _)| listed(name)) {
        return Err(bad());
    }
    target.retain(|name, _| listed(name));
    Ok(())
}

/// Merges the lists that `$setElementOrder/…` is about, and returns their names.
fn set_orders<'p>(
    target: &mut Map,
    patch: &'p Map,
    schema: Option<&Schema>,
) -> Result<Vec<&'p str>, PatchError> {
    let empty = Value::Array(Array::new());
    let mut done = Vec::new();
    for (directive, order) in patch {
        let Some(name) = directive.strip_prefix(SET_ORDER) else {
            continue;
        };
        let order = order.as_array().ok_or_else(|| wrong_argument(&empty, order))?;
        let before = match target.get(name) {
            Some(Value::Array(items)) => Some(items),
            Some(other) => return Err(wrong_argument(&empty, other)),
            None => None,
        };
        let change = match patch.get(name) {
            Some(Value::Array(items)) => Some(items),
            Some(other) => return Err(wrong_argument(&empty, other)),
            None => None,
        };
        let merge = list_merge(schema, name);
        list::check_order(change.map_or(&[], Array::as_slice), order, merge.key)?;
        let merged = match (before, change) {
            (Some(before), None) => before.clone(),
            (None, Some(change)) => change.iter().filter_map(list::without_directives).collect(),
            (Some(before), Some(change)) if merge.merge => list::merge(before, change, &merge)?,
            (Some(_), Some(change)) => change.clone(),
            (None, None) => continue,
        };
        let before = list::order_after(before.map_or(&[], Array::as_slice), change, merge.key);
        let merged = list::in_order(merged, order, &before, merge.key)?;
        target.insert(name.to_owned(), Value::Array(merged));
        done.push(name);
    }
    Ok(done)
}

fn delete_from(target: &mut Map, list: &str, values: &Value) {
    if values.is_null() {
        target.remove(list);
        return;
    }
    if let (Some(Value::Array(items)), Value::Array(values)) = (target.get_mut(list), values) {
        items.retain(|item| !values.contains(item));
    }
}

fn merge_field(
    target: &mut Map,
    name: &str,
    value: &Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    // What says nothing new leaves everything where it is.
    if !value.is_null() && target.get(name).is_some_and(|old| old.is_same(value)) {
        return Ok(());
    }
    if value.is_null() {
        target.remove(name);
        return Ok(());
    }
    let field = schema.and_then(|schema| schema.field(name));
    match (target.get_mut(name), value) {
        (Some(before @ Value::Object(_)), Value::Object(_))
            if field.is_some_and(|field| field.patch.replace) =>
        {
            *before = value.clone();
        }
        (Some(Value::Object(target)), Value::Object(patch)) => {
            merge(target, patch, schema.and_then(|schema| schema.child(name)))?;
        }
        (Some(Value::Array(before)), Value::Array(change)) => {
            let merge = list_merge(schema, name);
            *before = match merge.merge {
                true => list::merge(before, change, &merge)?,
                false => change.clone(),
            };
        }
        (_, value) => {
            match list::without_directives(value) {
                Some(value) => target.insert(name.to_owned(), value),
                None => target.remove(name),
            };
        }
    }
    Ok(())
}

/// How the list under `name` merges: by the field's strategy and the type of its items.
fn list_merge<'s>(schema: Option<&'s Schema>, name: &str) -> ListMerge<'s> {
    let field = schema.and_then(|schema| schema.field(name));
    let items = |field: &'s Field| field.schema.as_array().map(|array| &*array.items);
    ListMerge {
        merge: field.is_some_and(|field| field.patch.merge),
        key: field.and_then(|field| field.patch.key.as_deref()),
        items: field.and_then(items),
    }
}
