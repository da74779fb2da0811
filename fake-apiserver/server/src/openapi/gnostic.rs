//! The protobuf form of OpenAPI v2 (gnostic's `openapi.v2.Document`), which kubectl and client-go read.
//!
//! Of the paths only the methods, their parameters and the kinds they are of are written: nothing else is read of them.

use machinery::wire::Writer;
use shared_json::{Array, Map, Name, Value};

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    text(&mut out, 1, document.get("swagger"));
    if let Some(info) = document.get("info") {
        out.message(2, |out| {
            text(out, 1, info.get("title"));
            text(out, 2, info.get("version"));
        });
    }
    out.message(8, |out| {
        for (path, item) in entries(document.get("paths")) {
            out.message(2, |out| {
                out.string(1, path);
                out.message(2, |out| path_item(out, item));
            });
        }
    });
    out.message(9, |out| named_schemas(out, document.get("definitions")));
    out.into_bytes()
}

fn entries(value: Option<&Value>) -> impl Iterator<Item = (&Name, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn list(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default()
}

fn text(out: &mut Writer, field: u32, value: Option<&Value>) {
    if let Some(text) = value.and_then(Value::as_str) {
        out.string(field, text);
    }
}

/// `Any`: a value as YAML, of which JSON is a part.
fn any(out: &mut Writer, field: u32, value: &Value) {
    out.message(field, |out| out.string(2, &value.to_string()));
}

fn extensions(out: &mut Writer, field: u32, map: &Map) {
    for (key, value) in map.iter().filter(|(key, _)| key.starts_with("x-")) {
        out.message(field, |out| {
            out.string(1, key);
            any(out, 2, value);
        });
    }
}

fn path_item(out: &mut Writer, item: &Value) {
    const METHODS: [(&str, u32); 6] = [
        ("get", 2),
        ("put", 3),
        ("post", 4),
        ("delete", 5),
        ("head", 7),
        ("patch", 8),
    ];
    for (method, field) in METHODS {
        if let Some(operation) = item.get(method).and_then(Value::as_object) {
            out.message(field, |out| {
                text(out, 5, operation.get("operationId"));
                parameters(out, 8, operation.get("parameters"));
                out.message(9, |_| {});
                extensions(out, 13, operation);
            });
        }
    }
    parameters(out, 9, item.get("parameters"));
}

/// `ParametersItem` → `Parameter` → `NonBodyParameter` → the sub-schema of a query's parameter.
fn parameters(out: &mut Writer, field: u32, parameters: Option<&Value>) {
    let query = list(parameters)
        .iter()
        .filter(|p| p.get("in").and_then(Value::as_str) == Some("query"));
    for parameter in query {
        out.message(field, |out| {
            out.message(1, |out| {
                out.message(2, |out| {
                    out.message(3, |out| {
                        text(out, 2, parameter.get("in"));
                        text(out, 4, parameter.get("name"));
                        text(out, 6, parameter.get("type"));
                    });
                });
            });
        });
    }
}

fn named_schemas(out: &mut Writer, schemas: Option<&Value>) {
    for (name, value) in entries(schemas) {
        out.message(1, |out| {
            out.string(1, name);
            out.message(2, |out| schema(out, value));
        });
    }
}

fn schema(out: &mut Writer, value: &Value) {
    let Some(map) = value.as_object() else { return };
    text(out, 1, map.get("$ref"));
    text(out, 2, map.get("format"));
    text(out, 3, map.get("title"));
    text(out, 4, map.get("description"));
    for (field, key) in [(7, "maximum"), (9, "minimum")] {
        if let Some(number) = map.get(key).and_then(Value::as_f64) {
            out.double(field, number);
        }
    }
    for (field, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
    ] {
        if let Some(number) = map.get(key).and_then(Value::as_u64) {
            out.varint(field, number);
        }
    }
    text(out, 13, map.get("pattern"));
    for required in list(map.get("required")) {
        text(out, 19, Some(required));
    }
    for allowed in list(map.get("enum")) {
        any(out, 20, allowed);
    }
    match map.get("additionalProperties") {
        Some(Value::Bool(open)) => out.message(21, |out| out.varint(2, u64::from(*open))),
        Some(inner) => out.message(21, |out| out.message(1, |out| schema(out, inner))),
        None => {}
    }
    if map.contains_key("type") {
        out.message(22, |out| text(out, 1, map.get("type")));
    }
    if let Some(items) = map.get("items") {
        out.message(23, |out| out.message(1, |out| schema(out, items)));
    }
    for part in list(map.get("allOf")) {
        out.message(24, |out| schema(out, part));
    }
    if map.contains_key("properties") {
        out.message(25, |out| named_schemas(out, map.get("properties")));
    }
    extensions(out, 31, map);
}
