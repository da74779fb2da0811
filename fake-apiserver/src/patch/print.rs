//! Values as Go's `%v` prints them; patch errors quote them that way.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use shared_json::{Map, Name, Value};

use crate::types::Schema;

/// `map[a:1 b:[x y]]`.
pub(crate) fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_print(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// The Go type of a decoded JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What `json.Unmarshal` calls a value.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The fields of Go's structs, in their order.
static ORDER: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    let lines = include_str!("order.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fields)| (name, fields.split(' ').collect()))
        .collect()
});

/// The fields of an object in the order of Go's struct.
pub(super) fn in_order<'a>(schema: &Schema, map: &'a Map) -> Vec<(&'a Name, &'a Value)> {
    let mut fields: Vec<(&Name, &Value)> = map.iter().collect();
    if let Some(order) = schema.name.as_deref().and_then(|name| ORDER.get(name)) {
        fields.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    }
    fields
}

/// A patched object as Go writes it: what the patch touched by name, all else in the order of the structs. `touched` is an object
/// of the objects that the patch went through.
pub(crate) fn go_json(object: &Value, touched: &Value, schema: Option<&Schema>) -> String {
    written(object, Some(touched), schema)
}

fn written(value: &Value, touched: Option<&Value>, schema: Option<&Schema>) -> String {
    let below = |key: &str| {
        touched
            .and_then(|touched| touched.get(key))
            .filter(|part| part.is_object())
    };
    match value {
        Value::Object(map) => {
            let fields = match (schema, touched) {
                (Some(schema), None) => in_order(schema, map),
                _ => map.iter().collect(),
            };
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| {
                    let schema = schema.and_then(|schema| schema.child(key));
                    let text = written(value, below(key), schema);
                    format!("{}:{text}", Value::from(key.as_str()))
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let schema = schema.and_then(Schema::as_array).map(|array| &*array.items);
            let items = items.iter().enumerate();
            let items: Vec<String> = items
                .map(|(index, item)| written(item, below(&index.to_string()), schema))
                .collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}
