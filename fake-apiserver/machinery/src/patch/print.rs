//! Values as Go's `%v` prints them; patch errors quote them that way.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use shared_json::{Map, Name, Value};

use crate::types::{Schema, go_float};

/// `map[a:1 b:[x y]]`.
pub fn go_print(value: &Value) -> String {
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
        Value::Number(number) if number.as_i64().is_none() => go_float(number.as_f64().unwrap_or_default()),
        scalar => scalar.to_string(),
    }
}

/// The Go type of a decoded JSON value. A whole number that is too large for 64 bits and a sign is none.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_none() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The name of a value's type in `json.Unmarshal`.
pub fn json_type(value: &Value) -> &'static str {
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
        .map(|(name, fields)| {
            let mut fields: Vec<&str> = fields.split(' ').collect();
            // The metadata of what has a kind of its own comes after that; of all else it comes first.
            if fields.starts_with(&["kind", "apiVersion"]) {
                fields.insert(2, "metadata");
            }
            (name, fields)
        })
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

/// A patched object as Go writes it: parts that the patch touched by name, all others in the order of the structs. `touched` is
/// an object of the objects that the patch went through.
pub fn go_json(object: &Value, touched: &Value, schema: Option<&Schema>) -> String {
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[test]
    fn structs_within_structs() {
        let schema = crate::types::builtin(("apps", "v1", "StatefulSet")).expect("a type");
        let set = json!({"spec": {
            "volumeClaimTemplates": [
                {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": {}, "status": {}},
            ],
            "template": {"metadata": {"labels": {}}, "spec": {}},
        }});
        assert_eq!(
            go_json(&set, &json!({}), Some(&schema)),
            "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{}},\"spec\":{}},\"volumeClaimTemplates\":[{\"kind\":\
             \"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"spec\":{},\"status\":{}}]}}"
        );
    }

    /// The output of Go's `%v` for values of a decoder that keeps whole numbers of 64 bits.
    #[rstest]
    #[case("1.0", "1", "float64")]
    #[case("-1.50", "-1.5", "float64")]
    #[case("123456.5", "123456.5", "float64")]
    #[case("1e6", "1e+06", "float64")]
    #[case("12345678.5", "1.23456785e+07", "float64")]
    #[case("0.0001", "0.0001", "float64")]
    #[case("0.00001", "1e-05", "float64")]
    #[case("1e300", "1e+300", "float64")]
    #[case("1000000", "1000000", "int64")]
    #[case("9223372036854775807", "9223372036854775807", "int64")]
    #[case("9223372036854775808", "9.223372036854776e+18", "float64")]
    #[case("18446744073709551615", "1.8446744073709552e+19", "float64")]
    #[case("99999999999999999999", "1e+20", "float64")]
    fn numbers(#[case] written: &str, #[case] printed: &str, #[case] go: &str) {
        let value: Value = shared_json::from_str(written).expect("a number");
        assert_eq!((go_print(&value).as_str(), go_type(&value)), (printed, go));
        assert_eq!(
            go_print(&json!({"a": [value, null]})),
            format!("map[a:[{printed} <nil>]]")
        );
    }
}
