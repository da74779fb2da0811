//! JSON merge patch (RFC 7386).

use super::PatchError;
use super::print::json_type;
use shared_json::{Map, Name, Value};

/// Merges `patch` into `doc`: objects merge field by field, null removes, anything else replaces.
///
/// Fails with [`PatchError::Malformed`] if the patch is not an object. Null is taken for an empty patch, as the real server
/// takes it.
///
/// ```
/// use shared_json::json;
/// let merged = machinery::patch::merge::apply(&json!({"a": 1, "b": 2}), &json!({"b": null, "c": 3}));
/// assert_eq!(merged, Ok(json!({"a": 1, "c": 3})));
/// ```
pub fn apply(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    match patch {
        Value::Null => Ok(doc.clone()),
        Value::Object(fields) => {
            let mut merged = doc.clone();
            merge_fields(&mut merged, fields);
            Ok(merged)
        }
        other => Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

fn merge_fields(target: &mut Value, patch: &Map) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else {
        return;
    };
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            Value::Object(fields) => merge_fields(target.entry(name.as_str()).or_insert(Value::Null), fields),
            other => {
                // What replaces an object is taken as it is.
                let replaces = target.get(name.as_str()).is_some_and(Value::is_object);
                let value = match replaces {
                    true => other.clone(),
                    false => without_nulls(other),
                };
                target.insert(name.clone(), value);
            }
        }
    }
}

/// A list as a merge takes it over: its objects without their null fields.
pub fn without_nulls(value: &Value) -> Value {
    let mut value = value.clone();
    // One without any stays the same memory.
    if has_nulls(&value) {
        prune_nulls(&mut value);
    }
    value
}

/// Whether a field of an object in it, at any depth, is null.
fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(|value| value.is_null() || has_nulls(value)),
        Value::Array(items) => items.iter().any(has_nulls),
        _ => false,
    }
}

/// Takes fields out that are null; items of lists stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            for (_, value) in fields.iter_mut() {
                prune_nulls(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

/// The objects that a patch goes through, be it that it changes nothing there. `operations` is whether it is a JSON patch.
pub fn touched(operations: bool, patch: &Value) -> Value {
    if !operations {
        return by_place(patch);
    }
    let mut out = Value::Object(Map::new());
    for operation in patch.as_array().into_iter().flatten() {
        let paths = ["path", "from"].map(|field| operation.get(field).and_then(Value::as_str));
        for path in paths.into_iter().flatten() {
            let mut at = &mut out;
            let parts: Vec<&str> = path.split('/').skip(1).collect();
            for part in parts.iter().take(parts.len().saturating_sub(1)) {
                let part = part.replace("~1", "/").replace("~0", "~");
                let next = &mut at[part.as_str()];
                if next.is_null() {
                    *next = Value::Object(Map::new());
                }
                at = next;
            }
        }
    }
    out
}

/// The patch, with lists as objects by index.
fn by_place(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), by_place(value)))
            .collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| (Name::from(index.to_string()), by_place(item)))
                .collect()
        }
        other => other.clone(),
    }
}

/// The merge patch that turns `old` into `new`: `apply(old, diff(old, new)) == new` for objects without nulls in them.
pub fn diff(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return new.clone();
    };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                patch.insert(name.clone(), diff(before, value));
            }
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}))]
    #[case(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}))]
    #[case(json!({"a": "b"}), json!({"a": null}), json!({}))]
    #[case(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}))]
    #[case(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}))]
    #[case(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}))]
    #[case(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}))]
    #[case(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}))]
    #[case(json!({"a": "x"}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}}))]
    fn merges(#[case] doc: Value, #[case] patch: Value, #[case] merged: Value) {
        assert_eq!(apply(&doc, &patch), Ok(merged));
    }

    #[rstest]
    #[case(json!([]), "array")]
    #[case(json!("s"), "string")]
    #[case(json!(5), "number")]
    fn wants_an_object(#[case] patch: Value, #[case] found: &str) {
        let message = format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        );
        assert_eq!(apply(&json!({}), &patch), Err(PatchError::Malformed(message)));
    }
}
