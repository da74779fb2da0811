//! Helpers for JSON values.

use serde_json::Value;

/// Merges `other` into `value`, object by object; anything else is replaced, and `null` stays `null`.
pub(crate) fn merge(value: &mut Value, other: Value) {
    match (value, other) {
        (Value::Object(map), Value::Object(other)) => {
            for (key, field) in other {
                merge(map.entry(key).or_insert(Value::Null), field);
            }
        }
        (value, other) => *value = other,
    }
}
