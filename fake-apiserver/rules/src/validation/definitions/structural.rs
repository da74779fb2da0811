//! Whether a schema is structural: every field has a type outside of `allOf`, `anyOf`, `oneOf` and `not`, and metadata is left
//! alone.

use pod_rules::field_error::FieldError;
use shared_json::{Array, Name, Value};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Items,
    Field,
}

/// Fields that no schema here may have: with them it is not read as a structural one at all.
const UNSUPPORTED: [&str; 7] = [
    "id",
    "$schema",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
];

pub(super) fn at(path: &str, part: &str) -> String {
    format!("{path}.{part}")
}

pub(super) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Array::as_slice)
}

pub(super) fn fields(schema: &Value) -> impl Iterator<Item = (&Name, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// Whether a field of a schema says anything.
pub(super) fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty() || matches!(name, "not" | "dependencies"),
        Some(_) => true,
    }
}

/// All schemas right inside of one.
pub(super) fn parts(schema: &Value) -> Vec<&Value> {
    let mut out: Vec<&Value> = fields(schema).map(|(_, part)| part).collect();
    for name in ["items", "additionalProperties", "not"] {
        out.extend(schema.get(name).filter(|part| part.is_object()));
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        out.extend(list(schema, name));
    }
    out
}

/// Whether a schema can be read as a structural one.
pub(super) fn is_readable(schema: &Value) -> bool {
    !UNSUPPORTED.iter().any(|name| is_set(schema, name))
        && list(schema, "items").is_empty()
        && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&Value::Bool(false))
        && parts(schema).into_iter().all(is_readable)
}

/// Every complaint about a schema that is not structural, sorted.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let items = schema.get("items").filter(|items| items.is_object());
    if kind == "array" && items.is_none() {
        errors.push(FieldError::required(at(path, "items"), "must be specified"));
    }
    if let Some(items) = items {
        invariants(items, Level::Items, &at(path, "items"), errors);
    }
    for (name, part) in fields(schema) {
        invariants(
            part,
            Level::Field,
            &at(path, &format!("properties[{name}]")),
            errors,
        );
    }
    let additional = schema
        .get("additionalProperties")
        .filter(|given| !given.is_null());
    if let Some(additional) = additional {
        let path = at(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                path.clone(),
                "must not be used at the root",
            ));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &path, errors);
        }
    }
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    for name in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if int_or_string && flag(schema, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(at(path, name), true, detail));
        }
    }
    values(schema, is_either(list(schema, "anyOf")), true, path, errors);

    let type_path = at(path, "type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(type_path.clone(), detail)
        } else {
            FieldError::invalid(type_path.clone(), kind, detail)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Items => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(type_path.clone(), detail));
    }
    if embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at(path, "additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(type_path, kind, "must be object at the root"));
    }
    metadata(schema, level == Level::Root || embedded, level, path, errors);
    if embedded && !preserve && fields(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at(path, "properties"), detail));
    }
}

/// Of metadata only names may be restricted, and that at the root alone.
fn metadata(schema: &Value, is_resource: bool, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let property = |name: &str| schema.get("properties").and_then(|fields| fields.get(name));
    for name in ["kind", "apiVersion"] {
        if let Some(part) = property(name).filter(|part| is_resource && text(part, "type") != "string") {
            let path = at(path, &format!("properties[{name}].type"));
            errors.push(FieldError::invalid(path, text(part, "type"), "must be string"));
        }
    }
    let Some(metadata) = property("metadata") else {
        return;
    };
    let path = at(path, "properties[metadata]");
    if is_resource && text(metadata, "type") != "object" {
        errors.push(FieldError::invalid(
            at(&path, "type"),
            text(metadata, "type"),
            "must be object",
        ));
    }
    let names_only = fields(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let says_more = metadata.as_object().into_iter().flatten().any(|(field, _)| {
        !matches!(field.as_str(), "type" | "default" | "properties") && is_set(metadata, field)
    });
    if level == Level::Root && (!names_only || says_more) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Whether these are `type: integer` and `type: string`, and nothing else.
fn is_either(schemas: &[Value]) -> bool {
    let says = |schema: &Value, kind: &str| {
        schema.as_object().is_some_and(|map| map.len() == 1) && text(schema, "type") == kind
    };
    matches!(schemas, [first, second] if says(first, "integer") && says(second, "string"))
}

/// The schemas in `allOf`, `anyOf`, `oneOf` and `not`. `either` is whether `anyOf` spells out an int-or-string.
fn values(schema: &Value, either: bool, first_may: bool, path: &str, errors: &mut Vec<FieldError>) {
    if !either {
        for (index, part) in list(schema, "anyOf").iter().enumerate() {
            nested(part, false, &at(path, &format!("anyOf[{index}]")), errors);
        }
    }
    for (index, part) in list(schema, "allOf").iter().enumerate() {
        let either = first_may && index == 0 && is_either(list(part, "anyOf"));
        nested(part, either, &at(path, &format!("allOf[{index}]")), errors);
    }
    for (index, part) in list(schema, "oneOf").iter().enumerate() {
        nested(part, false, &at(path, &format!("oneOf[{index}]")), errors);
    }
    if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
        nested(part, false, &at(path, "not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Some(problem) = machinery::pattern::problem(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(FieldError::invalid(at(path, "pattern"), pattern, detail));
    }
}

/// The fields that combined schemas must leave to the schema around them, and the reasons.
const NESTED: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

fn nested(schema: &Value, either: bool, path: &str, errors: &mut Vec<FieldError>) {
    values(schema, either, false, path, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        nested(items, false, &at(path, "items"), errors);
    }
    for (name, part) in fields(schema) {
        nested(part, false, &at(path, &format!("properties[{name}]")), errors);
    }
    if matches!(
        schema.get("additionalProperties"),
        Some(Value::Object(_) | Value::Bool(true))
    ) {
        let path = at(path, "additionalProperties");
        errors.push(FieldError::forbidden(path, "must be undefined to be structural"));
    }
    for (name, detail) in NESTED {
        let says = match schema.get(name) {
            Some(Value::Bool(flag)) => *flag,
            _ if name == "default" => schema.get(name).is_some_and(|value| !value.is_null()),
            _ => is_set(schema, name),
        };
        if says {
            errors.push(FieldError::forbidden(at(path, name), detail));
        }
    }
    if fields(schema).any(|(name, _)| name == "metadata") {
        let path = at(path, "properties[metadata]");
        errors.push(FieldError::forbidden(
            path,
            "must not be specified in a nested context",
        ));
    }
}

/// Every field that schemas combined at the root mention must be declared outside of them, too.
fn completeness(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
        mentioned(part, schema, &at(path, "not"), path, errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in list(schema, name).iter().enumerate() {
            mentioned(part, schema, &at(path, &format!("{name}[{index}]")), path, errors);
        }
    }
}

/// `place` is where the declaring schema is.
fn mentioned(schema: &Value, declared: &Value, path: &str, place: &str, errors: &mut Vec<FieldError>) {
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in list(schema, name).iter().enumerate() {
            mentioned(
                part,
                declared,
                &at(path, &format!("{name}[{index}]")),
                place,
                errors,
            );
        }
    }
    if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
        mentioned(part, declared, &at(path, "not"), place, errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        match declared.get("items").filter(|items| items.is_object()) {
            Some(own) => mentioned(items, own, &at(path, "items"), &at(place, "items"), errors),
            None => {
                let detail = format!("because it is defined in {path}.items");
                errors.push(FieldError::required(at(place, "items"), detail));
            }
        }
    }
    for (name, part) in fields(schema) {
        let key = format!("properties[{name}]");
        match declared.get("properties").and_then(|fields| fields.get(name)) {
            Some(own) => mentioned(part, own, &at(path, &key), &at(place, &key), errors),
            None => {
                let detail = format!("because it is defined in {}", at(path, &key));
                errors.push(FieldError::required(at(place, &key), detail));
            }
        }
    }
}
