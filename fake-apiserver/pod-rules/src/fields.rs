//! Reading the fields of JSON objects: a field that is absent, null or of another type reads as Go's zero value.

use std::sync::LazyLock;

use shared_json::{Array, Map, Value};

static NO_FIELDS: LazyLock<Map> = LazyLock::new(Map::new);

/// The fields of an object.
pub trait Fields {
    /// The field, unless it is absent or null.
    fn part(&self, field: &str) -> Option<&Value>;

    /// Whether a field is there and not null.
    fn has(&self, field: &str) -> bool {
        self.part(field).is_some()
    }
    /// A text; empty if there is none.
    fn text(&self, field: &str) -> &str {
        self.part(field).and_then(Value::as_str).unwrap_or_default()
    }
    /// The text, if it is set, be it empty.
    fn text_if_set(&self, field: &str) -> Option<&str> {
        self.part(field).and_then(Value::as_str)
    }
    /// A whole number.
    fn int(&self, field: &str) -> Option<i64> {
        self.part(field).and_then(Value::as_i64)
    }
    /// A boolean.
    fn flag(&self, field: &str) -> Option<bool> {
        self.part(field).and_then(Value::as_bool)
    }
    /// Whether a boolean is there and true.
    fn is_true(&self, field: &str) -> bool {
        self.flag(field) == Some(true)
    }
    /// A list; empty if there is none.
    fn list(&self, field: &str) -> &[Value] {
        self.part(field)
            .and_then(Value::as_array)
            .map(Array::as_slice)
            .unwrap_or_default()
    }
    /// A map; empty if there is none.
    fn map(&self, field: &str) -> &Map {
        self.part(field).and_then(Value::as_object).unwrap_or(&NO_FIELDS)
    }
    /// The texts of a list.
    fn texts(&self, field: &str) -> impl Iterator<Item = &str> {
        self.list(field)
            .iter()
            .map(|value| value.as_str().unwrap_or_default())
    }
}

impl Fields for Value {
    fn part(&self, field: &str) -> Option<&Value> {
        self.get(field).filter(|value| !value.is_null())
    }
}

impl Fields for Map {
    fn part(&self, field: &str) -> Option<&Value> {
        self.get(field).filter(|value| !value.is_null())
    }
}

/// A value that stands where there is none.
pub static NOTHING: Value = Value::Null;

/// The value at a pointer, unless it is absent or null.
pub fn path<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer).filter(|value| !value.is_null())
}

/// Whether two optional values in Go's form are equal as its semantic equality has it: nothing and an empty list are one. Empty maps are
/// left out of that form, so an empty object is a struct, and not nothing.
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    equal(a, b, false)
}

/// The same of parts of definitions of custom resources, which keep their empty maps: these are nothing, too.
pub fn same_in_definitions(a: Option<&Value>, b: Option<&Value>) -> bool {
    equal(a, b, true)
}

fn equal(a: Option<&Value>, b: Option<&Value>, maps: bool) -> bool {
    match (
        a.filter(|value| !is_empty(value, maps)),
        b.filter(|value| !is_empty(value, maps)),
    ) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            // Each pair is looked at once: what is in both stands deep within it again.
            a.iter().all(|(key, a)| equal(Some(a), b.get(key), maps))
                && b.iter()
                    .all(|(key, b)| a.contains_key(key) || equal(None, Some(b), maps))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            let mut items = a.iter().zip(b);
            a.len() == b.len() && items.all(|(a, b)| a == b || equal(Some(a), Some(b), maps))
        }
        (a, b) => a == b,
    }
}

fn is_empty(value: &Value, maps: bool) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => maps && map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{same, same_in_definitions};
    use rstest::rstest;
    use shared_json::{Value, json};

    /// So deep that a walk that visits each part twice never comes to an end.
    fn deep(innermost: Value) -> Value {
        (0..100).fold(innermost, |inner, _| json!({"a": inner}))
    }

    #[rstest]
    #[case::alike(json!({"b": 1}), json!({"b": 1}), true)]
    #[case::others(json!({"b": 1}), json!({"b": 2}), false)]
    #[case::one_more(json!({"b": 1}), json!({"b": 1, "c": 1}), false)]
    #[case::one_less(json!({"b": 1, "c": 1}), json!({"b": 1}), false)]
    #[case::nothing_more(json!({"b": 1}), json!({"b": 1, "c": []}), true)]
    #[case::nothing_less(json!({"b": 1, "c": null}), json!({"b": 1}), true)]
    fn deep_within(#[case] a: Value, #[case] b: Value, #[case] equal: bool) {
        let (a, b) = (deep(a), deep(b));
        assert_eq!(same(Some(&a), Some(&b)), equal);
        assert_eq!(same_in_definitions(Some(&a), Some(&b)), equal);
    }
}
