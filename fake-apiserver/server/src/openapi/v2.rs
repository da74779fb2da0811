//! OpenAPI v2: one document of everything.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use machinery::types::published::{self, COMPONENTS};
use shared_json::{Map, Value, json};

use super::v3::{discovery, with_group_kinds};
use super::{Document, custom, gnostic, hash, merged, operations};
use crate::resources::{Registry, Resource};

pub(super) const DEFINITIONS: &str = "#/definitions/";
/// The clients' media type of the protobuf form, and the server's: RFC 7231 knows no `@`.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

pub(super) fn document(registry: &Registry, others: &[Arc<Value>], accept: &str) -> Option<Document> {
    let binary = binary_wanted(accept)?;
    let resources = registry.all();
    let own = resources.iter().map(|resource| fingerprint(resource));
    let fingerprints: Vec<String> = own.chain(others.iter().map(ToString::to_string)).collect();
    let hash = hash(fingerprints.iter().map(String::as_str));
    let bytes = cached(&hash, binary, || {
        let mut document = make(registry, &resources);
        for other in others {
            merged::merge(&mut document, other);
        }
        if binary {
            gnostic::encode(&document)
        } else {
            document.to_string().into_bytes()
        }
    });
    let content_type = if binary { PROTOBUF[1] } else { "application/json" };
    Some(Document {
        bytes,
        content_type,
        hash,
    })
}

/// Whether the first media type that there is stands for protobuf.
fn binary_wanted(accept: &str) -> Option<bool> {
    if accept.trim().is_empty() {
        return Some(false);
    }
    accept
        .split(',')
        .find_map(|range| match range.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/*" | "application/json" => Some(false),
            other => PROTOBUF.contains(&other).then_some(true),
        })
}

fn fingerprint(resource: &Resource) -> String {
    let id = format!("{}/{}", resource.api_version(), resource.plural);
    match &resource.custom {
        Some(custom) => format!("{id} {} {}", resource.kind, custom.published),
        None => id,
    }
}

/// The document of this hash and form, kept until another is asked for.
fn cached(hash: &str, binary: bool, make: impl FnOnce() -> Vec<u8>) -> Bytes {
    static LAST: Mutex<[Option<(String, Bytes)>; 2]> = Mutex::new([None, None]);
    let slot = usize::from(binary);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bytes)) = last()[slot].as_ref().filter(|(known, _)| known == hash) {
        return bytes.clone();
    }
    let bytes = Bytes::from(make());
    last()[slot] = Some((hash.to_owned(), bytes.clone()));
    bytes
}

fn make(registry: &Registry, resources: &[Arc<Resource>]) -> Value {
    let discovery = discovery(registry).into_iter();
    let mut paths: Map = discovery.map(|(path, item)| (path, path_item(item))).collect();
    let mut definitions: Map = published::definitions()
        .iter()
        .map(|(name, schema)| {
            (
                name.clone(),
                definition(name, with_group_kinds(name, schema.clone(), resources)),
            )
        })
        .collect();
    for resource in resources {
        for (path, item) in operations::of_resource(resource) {
            paths.insert(path, path_item(item));
        }
        for (name, schema) in custom::definitions(resource) {
            definitions.insert(name, structure(of_custom(schema)));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {
            "BearerToken": {
                "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

fn definition(name: &str, schema: Value) -> Value {
    let mut out = structure(schema);
    // What v3 says with alternatives, v2 says with a type alone.
    let kind = match name.rsplit('.').next().unwrap_or(name) {
        "Quantity" | "IntOrString" => "string",
        _ => return out,
    };
    out["type"] = Value::from(kind);
    out
}

/// A schema of v3 as one of v2: references without `allOf`, no defaults, no keyword that v2 lacks.
fn structure(schema: Value) -> Value {
    match schema {
        Value::Object(mut map) => {
            if let Some(reference) = map.get("allOf").and_then(|all| all.pointer("/0/$ref")).cloned() {
                map.remove("allOf");
                map.insert("$ref".to_owned(), reference);
            }
            // A nullable value of v2 has no type.
            if map.remove("nullable") == Some(Value::from(true)) {
                map.remove("type");
            }
            for unknown in ["default", "oneOf", "anyOf", "not", "x-kubernetes-validations"] {
                map.remove(unknown);
            }
            let converted = map.into_iter().map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("$ref", Value::String(path)) => Value::from(path.replace(COMPONENTS, DEFINITIONS)),
                    ("properties", Value::Object(fields)) => Value::Object(
                        fields
                            .into_iter()
                            .map(|(name, field)| (name, structure(field)))
                            .collect(),
                    ),
                    ("items" | "additionalProperties" | "schema", value) => structure(value),
                    ("allOf", Value::Array(list)) => Value::Array(list.into_iter().map(structure).collect()),
                    (_, value) => value,
                };
                (key, value)
            });
            Value::Object(converted.collect())
        }
        other => other,
    }
}

/// Whether a schema says of a value that it may be null, or may have fields that it does not declare.
fn is_set(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool) == Some(true)
}

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

/// A custom resource's schema for clients that take every field for unknown that is not declared: where others may stand, none is
/// declared.
fn of_custom(schema: Value) -> Value {
    if is_set(&schema, PRESERVES) {
        const KINDS: &str = "x-kubernetes-group-version-kind";
        let kinds = schema.get(KINDS).cloned().unwrap_or_default();
        return json!({"type": "object", KINDS: kinds});
    }
    without_preserved(schema)
}

fn without_preserved(mut schema: Value) -> Value {
    let hides = is_set(&schema, PRESERVES) || is_set(&schema, "nullable");
    let Some(map) = schema.as_object_mut() else {
        return schema;
    };
    if hides {
        map.remove("items");
        map.remove("properties");
    }
    let fields = map
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        // What may be null need not be there.
        let is_required = |name: &Value| {
            let field = name.as_str().and_then(|name| fields.get(name));
            !field.is_some_and(|field| is_set(field, "nullable"))
        };
        *required = required
            .iter()
            .filter(|name| is_required(name))
            .cloned()
            .collect();
        if required.is_empty() {
            map.remove("required");
        }
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = map.get_mut(below) {
            *schema = without_preserved(std::mem::take(schema));
        }
    }
    if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
        for field in fields.values_mut() {
            *field = without_preserved(std::mem::take(field));
        }
    }
    schema
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else { return item };
    let converted = item.into_iter().map(|(key, value)| match key.as_str() {
        "parameters" => (key, parameters(value)),
        _ => (key, operation(value)),
    });
    Value::Object(converted.collect())
}

fn operation(mut operation: Value) -> Value {
    let Some(map) = operation.as_object_mut() else {
        return operation;
    };
    let mut all = map
        .remove("parameters")
        .map(parameters)
        .unwrap_or_else(|| json!([]));
    map.insert("consumes".to_owned(), json!(["*/*"]));
    map.insert(
        "produces".to_owned(),
        json!([
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf"
        ]),
    );
    map.insert("schemes".to_owned(), json!(["https"]));
    if let Some(body) = map.remove("requestBody") {
        let content = body
            .get("content")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let types: Vec<String> = content.keys().map(ToString::to_string).collect();
        map.insert("consumes".to_owned(), json!(types));
        let schema = content
            .values()
            .next()
            .and_then(|entry| entry.get("schema"))
            .cloned()
            .unwrap_or_default();
        let mut parameter = json!({"name": "body", "in": "body", "schema": structure(schema)});
        if body.get("required") == Some(&Value::from(true)) {
            parameter["required"] = Value::from(true);
        }
        if let Some(list) = all.as_array_mut() {
            list.insert(0, parameter);
        }
    }
    if all.as_array().is_some_and(|list| !list.is_empty()) {
        map.insert("parameters".to_owned(), all);
    }
    if let Some(responses) = map.get_mut("responses").and_then(Value::as_object_mut) {
        for response in responses.values_mut() {
            let schema = response.pointer("/content/application~1json/schema").cloned();
            if let Some(response) = response.as_object_mut() {
                response.remove("content");
                if let Some(schema) = schema {
                    response.insert("schema".to_owned(), structure(schema));
                }
            }
        }
    }
    operation
}

/// Parameters of v2 say their type themselves.
fn parameters(list: Value) -> Value {
    let Value::Array(list) = list else { return list };
    let inline = |mut parameter: Value| {
        if let Some(map) = parameter.as_object_mut()
            && let Some(Value::Object(schema)) = map.remove("schema")
        {
            map.extend(schema);
        }
        parameter
    };
    list.into_iter().map(inline).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_root_that_preserves(json!({"type": "object", PRESERVES: true, "properties": {"a": {}}, "x-kubernetes-group-version-kind": [1]}),
        json!({"type": "object", "x-kubernetes-group-version-kind": [1]}))]
    #[case::a_field_that_preserves(json!({"properties": {"a": {"type": "object", PRESERVES: true, "properties": {"b": {}}}}}),
        json!({"properties": {"a": {"type": "object", PRESERVES: true}}}))]
    #[case::what_may_be_null(json!({"required": ["a", "b"], "properties": {"a": {"type": "array", "nullable": true, "items": {}}, "b": {}}}),
        json!({"required": ["b"], "properties": {"a": {}, "b": {}}}))]
    #[case::nothing_of_it(json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}))]
    fn custom_resources(#[case] schema: Value, #[case] expected: Value) {
        assert_eq!(structure(of_custom(schema)), expected);
    }
}
