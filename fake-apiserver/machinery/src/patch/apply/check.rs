//! The errors for which server-side apply refuses a configuration before it merges.

use super::path::PathElement;
use super::types::{MapShape, ScalarType, Shape, Type};
use crate::patch::print::{go_print, go_type};
use pod_rules::field_error::go_quote;
use shared_json::{Map, Value};
use std::collections::BTreeSet;

/// Every complaint about an applied configuration: undeclared fields, values of the wrong kind, items with one key.
pub(super) fn check(of: Type<'_>, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    walk(of, value, &mut String::new(), &mut errors);
    errors
}

fn walk(of: Type<'_>, value: &Value, path: &mut String, errors: &mut Vec<String>) {
    match (of.shape(Some(value)), value) {
        (Shape::Scalar(kind), value) => {
            if let Err(message) = scalar(kind, value) {
                complain(path, errors, &message);
            }
        }
        (_, Value::Null) => {}
        (Shape::Map(map), Value::Object(fields)) => walk_fields(map, fields, path, errors),
        (Shape::Map(_), other) => complain(
            path,
            errors,
            &format!("expected map, got &{{{}}}", go_print(other)),
        ),
        (Shape::List(list), Value::Array(items)) => {
            let mut seen = BTreeSet::new();
            for (at, item) in items.iter().enumerate() {
                let element = match list.atomic() {
                    true => PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX)),
                    false => match list.element(item) {
                        Ok(element) => element,
                        Err(message) => return complain(path, errors, &format!("element {at}: {message}")),
                    },
                };
                if !seen.insert(element.clone()) {
                    complain(path, errors, &format!("duplicate entries for key {element}"));
                }
                let length = path.len();
                path.push_str(&element.to_string());
                walk(list.items(), item, path, errors);
                path.truncate(length);
            }
        }
        (Shape::List(_), other) => complain(
            path,
            errors,
            &format!("expected list, got &{{{}}}", go_print(other)),
        ),
    }
}

/// The paths at which a configuration sets atomic parts.
pub(super) fn atomics(of: Type<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_atomics(of, value, "", &mut found);
    found
}

fn collect_atomics(of: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    if !matches!(of, Type::Known(..)) {
        return;
    }
    match (of.shape(Some(value)), value) {
        (Shape::Map(map), Value::Object(fields)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Some(of) = map.child(name).filter(|_| map.declares(name)) {
                    collect_atomics(of, value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            if list.atomic() {
                found.push(path.to_owned());
            }
            for (at, item) in items.iter().enumerate() {
                collect_atomics(list.items(), item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

fn complain(path: &str, errors: &mut Vec<String>, message: &str) {
    let separator = if path.is_empty() { "" } else { ": " };
    errors.push(format!("{path}{separator}{message}"));
}

fn walk_fields(shape: MapShape<'_>, fields: &Map, path: &mut String, errors: &mut Vec<String>) {
    for (name, value) in fields {
        let length = path.len();
        path.push('.');
        path.push_str(name);
        let of = shape.child(name);
        match of {
            Some(of) => walk(of, value, path, errors),
            None => errors.push(format!("{path}: field not declared in schema")),
        }
        path.truncate(length);
        if of.is_none() {
            return;
        }
    }
}

fn scalar(kind: ScalarType, value: &Value) -> Result<(), String> {
    let fits = match (kind, value) {
        (_, Value::Null) => true,
        (ScalarType::Text, value) => value.is_string(),
        (ScalarType::Number, value) => value.is_number(),
        (ScalarType::Boolean, value) => value.is_boolean(),
        (ScalarType::Untyped, value) => !value.is_object() && !value.is_array(),
    };
    if fits {
        return Ok(());
    }
    Err(match kind {
        ScalarType::Text => format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_literal(value)
        ),
        ScalarType::Number => format!("expected numeric (int or float), got {}", go_type(value)),
        ScalarType::Boolean => format!("expected boolean, got &{{{}}}", go_print(value)),
        ScalarType::Untyped => format!("expected any scalar, got &{{{}}}", go_print(value)),
    })
}

/// A value as Go's `%#v` prints it.
fn go_literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}:{}", go_quote(name), go_literal(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
