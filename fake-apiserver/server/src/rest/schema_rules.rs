//! Validation of an object by the resource's schema, its rules in CEL included.

use machinery::cel::rules::correlated;
use machinery::patch::{go_print, go_type};
use machinery::types::{Kind, Schema};
use pod_rules::field_error::{FieldError, FieldErrorKind};
use rules::validation::embedded;
use shared_json::Value;

use crate::resources::Resource;

/// Complaints after which the rules are not evaluated.
const BLOCKING: [FieldErrorKind; 5] = [
    FieldErrorKind::NotSupported,
    FieldErrorKind::Required,
    FieldErrorKind::TooLong,
    FieldErrorKind::TooMany,
    FieldErrorKind::TypeInvalid,
];
const BLOCKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";

/// Complaints about an object, new or changed, and warnings: an error that the old object had, too, is no
/// complaint. `metadata` are the complaints that come before these.
pub(crate) fn check(
    resource: &Resource,
    subresource: &str,
    (new, old): (&Value, Option<&Value>),
    metadata: &[FieldError],
) -> (Vec<FieldError>, Vec<String>) {
    let Some(schema) = resource.schema() else {
        return (Vec::new(), Vec::new());
    };
    let mut errors = schema.validate(new);
    let Some(custom) = &resource.custom else {
        return (errors, Vec::new());
    };
    if let Some(old) = old {
        errors.retain(|error| !stayed(error, &schema, new, old));
        // Where items were there twice before, nobody asks anew.
        let is_twice = |error: &FieldError| error.kind == FieldErrorKind::Duplicate;
        if errors.iter().any(is_twice) && schema.validate(old).iter().any(is_twice) {
            errors.retain(|error| !is_twice(error));
        }
    }
    // The numbers of the scale are looked at after the schema and before all else, the lists of the schema included.
    let lists = errors.partition_point(|error| error.kind != FieldErrorKind::Duplicate);
    errors.splice(lists..lists, scale(resource, new, subresource == "status"));
    if custom.embeds {
        // Who they are is looked at after the schema and before the lists, and anew with every write.
        let lists = errors.partition_point(|error| error.kind != FieldErrorKind::Duplicate);
        errors.splice(lists..lists, embedded::validate(&schema, new, false));
    }
    if custom.rules.is_empty() {
        return (errors, Vec::new());
    }
    // That a change takes the name away is found before the rules of the kind are asked.
    let counts = |error: &&FieldError| old.is_none() || error.path != "metadata.name";
    let before = metadata.iter().filter(counts);
    if before.chain(&errors).any(|error| BLOCKING.contains(&error.kind)) {
        errors.push(FieldError::invalid("<nil>", Value::Null, BLOCKED));
        return (errors, Vec::new());
    }
    let (complaints, warnings) = custom.rules.check(&schema, new, old);
    errors.extend(complaints);
    (errors, warnings)
}

/// The same of a change of the status, at which nothing else is looked: its fields are named as those of a whole.
pub(crate) fn of_status(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    // What is said of the scale begins with a dot, and has been chosen already.
    errors.retain(|error| {
        error.path == "<nil>" || error.path.starts_with(['.']) || error.path.starts_with("status")
    });
    for error in &mut errors {
        let Some(rest) = error.detail.strip_prefix("status") else {
            continue;
        };
        if let Some(rest) = rest.strip_prefix('.') {
            error.detail = rest.to_owned();
        } else if rest.starts_with(' ') {
            error.detail = rest.to_owned();
        }
    }
    errors
}

/// The errors in the numbers of a custom resource's scale: of the status alone where that alone changes.
fn scale(resource: &Resource, object: &Value, status_only: bool) -> Vec<FieldError> {
    let scale = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    let Some(scale) = scale else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (path, of_status) in [(&scale.spec_replicas, false), (&scale.status_replicas, true)] {
        if status_only && !of_status {
            continue;
        }
        let (number, detail) = match nested(object, path, "int64", Value::is_i64) {
            Err(detail) => (0, detail),
            Ok(found) => {
                let number = found.and_then(Value::as_i64).unwrap_or_default();
                let detail = match number {
                    ..0 => "should be a non-negative integer",
                    2_147_483_648.. => "should be less than or equal to 2147483647",
                    _ => continue,
                };
                (number, detail.to_owned())
            }
        };
        errors.push(FieldError::invalid(path.as_str(), number, detail));
    }
    if let Some(path) = &scale.label_selector
        && let Err(detail) = nested(object, path, "string", Value::is_string)
    {
        errors.push(FieldError::invalid(path.as_str(), "", detail));
    }
    errors
}

/// The value at a path such as `.spec.replicas`, if there is one.
///
/// # Errors
/// The value is of another type, or a value on the path has no parts; in the words of Go's accessors.
pub(crate) fn nested<'a>(
    object: &'a Value,
    path: &str,
    expected: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let complain = |path: &str, value: &Value, expected: &str| {
        Err(format!(
            "{path} accessor error: {} is of the type {}, expected {expected}",
            go_print(value),
            go_type(value)
        ))
    };
    let path = path.trim_start_matches('.');
    let mut value = object;
    let mut seen = String::new();
    for field in path.split('.') {
        seen.push('.');
        seen.push_str(field);
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return Ok(None),
            other => return complain(&seen, other, "map[string]interface{}"),
        };
        match map.get(field) {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    if fits(value) {
        return Ok(Some(value));
    }
    complain(&seen, value, expected)
}

/// Whether the value of a complaint is unchanged.
fn stayed(error: &FieldError, schema: &Schema, new: &Value, old: &Value) -> bool {
    // Combinations name their field in the text only: these are looked at as a whole.
    let mut path = match error.path.as_str() {
        "<nil>" => return false,
        path => parts(path),
    };
    if error.kind == FieldErrorKind::Required {
        path.pop();
    }
    let (mut schema, mut new, mut old) = (schema.clone(), new, old);
    for part in path {
        let place = schema;
        let next = match (&place.kind, part) {
            (Kind::Object(object), Part::Name(name)) => {
                let (Some(after), Some(before)) = (new.get(name), old.get(name)) else {
                    return false;
                };
                (new, old) = (after, before);
                let field = object.fields.get(name).map(|field| field.schema.shared());
                field.or_else(|| object.additional.as_ref().map(|values| values.shared()))
            }
            (Kind::Array(array), Part::Index(index)) => {
                let Some(after) = new.get(index) else {
                    return false;
                };
                match correlated(&array.list_type, after, old) {
                    Some(before) => (new, old) = (after, before),
                    // Items that cannot be told apart stay if the whole list does.
                    None => return new == old,
                }
                Some(array.items.shared())
            }
            _ => None,
        };
        let Some(next) = next else {
            return false;
        };
        schema = (*next).clone();
    }
    new == old
}

enum Part<'a> {
    Name(&'a str),
    Index(usize),
}

fn parts(path: &str) -> Vec<Part<'_>> {
    let pieces = path.split(['.', '[']).map(|piece| piece.trim_end_matches(']'));
    pieces
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.parse().map_or(Part::Name(piece), Part::Index))
        .collect()
}
