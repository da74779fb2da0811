//! Resources within custom resources: a value that a schema marks `x-kubernetes-embedded-resource` has an API version, a kind and
//! metadata of its own, which are read and judged as those of any object.

use machinery::types::{self, DecodeError, Kind, Object, Schema};
use pod_rules::field_error::FieldError;
use pod_rules::names;
use shared_json::{Map, Value};

use super::metadata;

/// Whether anything of this type is a resource of its own.
pub fn has(schema: &Schema) -> bool {
    match &schema.kind {
        Kind::Object(object) => {
            object.embedded_resource
                || object.fields.values().any(|field| has(&field.schema))
                || object.additional.as_ref().is_some_and(|values| has(values))
        }
        Kind::Array(array) => has(&array.items),
        _ => false,
    }
}

fn under(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

/// The parts of a value that its type describes, with their paths; keys of maps are in brackets.
fn parts<'a>(
    schema: &'a Schema,
    value: &'a Value,
    path: &'a str,
) -> impl Iterator<Item = (&'a Schema, &'a Value, String)> {
    let (fields, items) = match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => (Some((object, map)), None),
        (Kind::Array(array), Value::Array(items)) => (None, Some((array, items))),
        _ => (None, None),
    };
    let fields = fields.into_iter().flat_map(move |(object, map)| {
        map.iter()
            .filter_map(move |(name, value)| match object.fields.get(name) {
                Some(field) => Some((&*field.schema, value, under(path, name))),
                None => Some((&**object.additional.as_ref()?, value, format!("{path}[{name}]"))),
            })
    });
    let items = items.into_iter().flat_map(move |(array, items)| {
        let items = items.iter().enumerate();
        items.map(move |(index, value)| (&*array.items, value, format!("{path}[{index}]")))
    });
    fields.chain(items)
}

fn embedded<'a>(schema: &Schema, value: &'a Value) -> Option<&'a Map> {
    match &schema.kind {
        Kind::Object(Object {
            embedded_resource: true,
            ..
        }) => value.as_object(),
        _ => None,
    }
}

/// Reads the kinds of the resources within a value, and writes their metadata as Go would.
///
/// # Errors
/// The error of Go's decoder.
pub fn decode(schema: &Schema, value: &mut Value) -> Result<(), DecodeError> {
    check_types(schema, value, "")?;
    canonicalize(schema, value);
    Ok(())
}

fn check_types(schema: &Schema, value: &Value, path: &str) -> Result<(), DecodeError> {
    let refuse = |name: &str, value: &Value, why: String| {
        let error = FieldError::invalid(under(path, name), value.clone(), why);
        Err(DecodeError::Embedded(error.to_string()))
    };
    if let Some(map) = embedded(schema, value) {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = map.get(name).filter(|value| !value.is_string()) {
                return refuse(name, value, "must be a string".to_owned());
            }
        }
        if let Some(metadata) = map.get("metadata")
            && let Err(why) = types::object_meta().check_types(metadata)
        {
            return refuse("metadata", metadata, why.to_string());
        }
    }
    parts(schema, value, path).try_for_each(|(schema, value, path)| check_types(schema, value, &path))
}

fn canonicalize(schema: &Schema, value: &mut Value) {
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            if object.embedded_resource
                && let Some(metadata) = map.get_mut("metadata")
            {
                if metadata.is_null() {
                    *metadata = Value::Object(Map::new());
                }
                types::object_meta().canonicalize(metadata);
            }
            for (name, value) in map {
                if let Some(field) = object.fields.get(name) {
                    canonicalize(&field.schema, value);
                } else if let Some(values) = &object.additional {
                    canonicalize(values, value);
                }
            }
        }
        (Kind::Array(array), Value::Array(items)) => {
            items.iter_mut().for_each(|item| canonicalize(&array.items, item));
        }
        _ => {}
    }
}

/// The errors in the resources within a value, which may be one itself whatever its type says.
pub fn validate(schema: &Schema, value: &Value, is_resource: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(map) = value.as_object().filter(|_| is_resource) {
        check_resource(map, "", &mut errors);
    }
    walk(schema, value, "", &mut errors);
    errors
}

fn walk(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(map) = embedded(schema, value) {
        check_resource(map, path, errors);
    }
    for (schema, value, path) in parts(schema, value, path) {
        walk(schema, value, &path, errors);
    }
}

fn check_resource(map: &Map, path: &str, errors: &mut Vec<FieldError>) {
    check_identity(map, path, errors);
    if let Some(metadata) = map.get("metadata") {
        let found = metadata::validate_embedded(metadata);
        errors.extend(found.into_iter().map(|error| FieldError {
            path: under(path, &error.path),
            ..error
        }));
    }
}

/// The kind and API version of a resource within a resource.
fn check_identity(map: &Map, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = under(path, name);
        let Some(value) = map.get(name).filter(|value| !value.is_null()) else {
            errors.push(FieldError::required(at, ""));
            continue;
        };
        let text = value.as_str().unwrap_or_default();
        if text.is_empty() {
            errors.push(FieldError::invalid(at, text, "must not be empty"));
        } else if name == "kind" {
            for problem in names::old_label_problems(&text.to_lowercase()) {
                let detail = format!("may have mixed case, but should otherwise match: {problem}");
                errors.push(FieldError::invalid(at.as_str(), text, detail));
            }
        } else if text.matches('/').count() > 1 {
            let detail = format!("unexpected GroupVersion string: {text}");
            errors.push(FieldError::invalid(at, text, detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn schema() -> Schema {
        let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        let of = json!({"type": "object", "properties": {
            "one": pod, "list": {"type": "array", "items": pod}, "map": {"type": "object", "additionalProperties": pod}}});
        Schema::from_openapi_v3(&of).expect("a schema")
    }

    #[rstest]
    #[case(json!({"one": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a b"}}}), "")]
    #[case(json!({"one": {"kind": "Pod"}}), "one.apiVersion: Required value")]
    #[case(json!({"list": [{"apiVersion": "v1", "kind": ""}]}), "list[0].kind: Invalid value: \"\": must not be empty")]
    #[case(json!({"map": {"k": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}}}),
        "map[k].metadata.name: Invalid value: \"a/b\": may not contain '/'")]
    #[case(json!({"one": {"apiVersion": "v1", "kind": "Pod", "metadata": {"managedFields": [{"operation": "X"}]}}}),
        "one.metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`")]
    fn what_is_wrong(#[case] value: Value, #[case] expected: &str) {
        let errors: Vec<String> = validate(&schema(), &value, false)
            .iter()
            .map(FieldError::to_string)
            .collect();
        assert_eq!(errors.join(", "), expected);
    }

    #[rstest]
    #[case(json!({"one": {"apiVersion": 5}}), Err("one.apiVersion: Invalid value: 5: must be a string"))]
    #[case(json!({"list": [{"metadata": {"labels": "x"}}]}),
        Err("list[0].metadata: Invalid value: {\"labels\":\"x\"}: json: cannot unmarshal string into Go struct field \
             ObjectMeta.labels of type map[string]string"))]
    #[case(json!({"map": {"k": {"metadata": "x"}}}),
        Err("map[k].metadata: Invalid value: \"x\": json: cannot unmarshal string into Go value of type v1.ObjectMeta"))]
    #[case(json!({"one": {"metadata": null}}), Ok(json!({"one": {"metadata": {}}})))]
    #[case(json!({"one": {"metadata": {"name": "", "labels": null}}}), Ok(json!({"one": {"metadata": {}}})))]
    fn how_it_is_read(#[case] mut value: Value, #[case] expected: Result<Value, &str>) {
        assert!(has(&schema()));
        let got = decode(&schema(), &mut value)
            .map(|()| value)
            .map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }
}
