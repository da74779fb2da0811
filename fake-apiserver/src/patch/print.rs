//! Values as Go's `%v` prints them; patch errors quote them that way.

use shared_json::{Name, Value};

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

/// The order in which Go writes the fields of object metadata, and of an entry of its managed fields.
const METADATA_ORDER: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED_ORDER: [&str; 7] = [
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

/// A patched object as Go writes it: fields by name, but metadata that the patch did not touch in the order of the struct.
pub(crate) fn go_json(object: &Value, touched: bool) -> String {
    let Value::Object(map) = object else {
        return object.to_string();
    };
    let fields: Vec<String> = map
        .iter()
        .map(|(key, value)| {
            let text = if key == "metadata" {
                metadata(value, touched)
            } else {
                value.to_string()
            };
            format!("{}:{text}", Value::from(key.as_str()))
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn metadata(metadata: &Value, touched: bool) -> String {
    let Value::Object(map) = metadata else {
        return metadata.to_string();
    };
    let mut fields: Vec<(&Name, &Value)> = map.iter().collect();
    if !touched {
        fields.sort_by_key(|(key, _)| METADATA_ORDER.iter().position(|known| known == key));
    }
    let text = |key: &str, value: &Value| match (key, value) {
        ("managedFields", Value::Array(entries)) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|entry| ordered(entry, &MANAGED_ORDER))
                .collect();
            format!("[{}]", entries.join(","))
        }
        _ => value.to_string(),
    };
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), text(key, value)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// An object's fields in the given order.
fn ordered(value: &Value, order: &[&str]) -> String {
    let Value::Object(map) = value else {
        return value.to_string();
    };
    let mut fields: Vec<(&Name, &Value)> = map.iter().collect();
    fields.sort_by_key(|(key, _)| order.iter().position(|known| known == key));
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
        .collect();
    format!("{{{}}}", fields.join(","))
}
