//! Helpers for JSON values.

use serde_json::Value;

/// Merges `other` into `value`, object by object; anything else is replaced, and `null` stays `null`.
pub fn merge(value: &mut Value, other: Value) {
    match (value, other) {
        (Value::Object(map), Value::Object(other)) => {
            for (key, field) in other {
                merge(map.entry(key).or_insert(Value::Null), field);
            }
        }
        (value, other) => *value = other,
    }
}

/// Leaves out the fields that Go leaves out of strategies, hooks and selectors: false, empty lists, maps and texts, and a grace
/// period of zero.
pub fn omit_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(omit_empty);
            map.retain(|key, field| match field {
                Value::Bool(false) => false,
                Value::Array(list) => !list.is_empty(),
                Value::Number(number) => !(key == "gracePeriodSeconds" && number.as_i64() == Some(0)),
                Value::Object(map) => {
                    !(map.is_empty() && matches!(key.as_str(), "labelsHandler" | "matchLabels"))
                }
                Value::String(text) => !(text.is_empty() && key == "type"),
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(omit_empty),
        _ => {}
    }
}

/// The operations of a JSON patch that leads from one value to the other.
pub fn difference(path: &str, old: &Value, new: &Value, changes: &mut Vec<(&'static str, String)>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => difference(&format!("{path}/{key}"), before, value, changes),
                    None => changes.push(("add", format!("{path}/{key}"))),
                }
            }
            changes.extend(
                old.keys()
                    .filter(|key| !new.contains_key(*key))
                    .map(|key| ("remove", format!("{path}/{key}"))),
            );
        }
        (Value::Array(old), Value::Array(new)) => {
            for (at, (before, value)) in old.iter().zip(new).enumerate() {
                difference(&format!("{path}/{at}"), before, value, changes);
            }
            changes.extend((old.len()..new.len()).map(|at| ("add", format!("{path}/{at}"))));
            changes.extend((new.len()..old.len()).map(|at| ("remove", format!("{path}/{at}"))));
        }
        (old, new) if old != new => changes.push(("replace", path.to_owned())),
        _ => {}
    }
}
