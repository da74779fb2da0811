//! What the schema of a resource says of an object, its rules in CEL included.

use serde_json::Value;

use crate::cel::rules::correlated;
use crate::field_error::{FieldError, FieldErrorKind};
use crate::meta::at;
use crate::resources::Resource;
use crate::types::{Kind, Schema};

/// Complaints that leave it open what the rules would say.
const BLOCKING: [FieldErrorKind; 5] = [
    FieldErrorKind::NotSupported,
    FieldErrorKind::Required,
    FieldErrorKind::TooLong,
    FieldErrorKind::TooMany,
    FieldErrorKind::TypeInvalid,
];
const BLOCKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";

/// Complaints about an object, new or changed, and warnings: what is wrong and was so before is none of the writer's
/// business.
pub(crate) fn check(resource: &Resource, new: &Value, old: Option<&Value>) -> (Vec<FieldError>, Vec<String>) {
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
    if custom.rules.is_empty() {
        return (errors, Vec::new());
    }
    if errors.iter().any(|error| BLOCKING.contains(&error.kind)) {
        errors.push(FieldError::invalid("<nil>", Value::Null, BLOCKED));
        return (errors, Vec::new());
    }
    let (complaints, warnings) = custom.rules.check(&schema, new, old);
    errors.extend(complaints);
    (errors, warnings)
}

/// The same of a change of the status, at which nothing else is looked: its fields are named as those of a whole.
pub(crate) fn of_status(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    errors.retain(|error| error.path == "<nil>" || error.path.starts_with("status"));
    for error in &mut errors {
        if let Some(rest) = error.detail.strip_prefix("status.") {
            error.detail = rest.to_owned();
        }
    }
    errors
}

/// What is wrong with the numbers that the scale of a custom resource shows: of the status alone where that alone changes.
pub(crate) fn scale(resource: &Resource, object: &Value, status_only: bool) -> Vec<FieldError> {
    let scale = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    let Some(scale) = scale else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (path, of_status) in [(&scale.spec_replicas, false), (&scale.status_replicas, true)] {
        if status_only && !of_status {
            continue;
        }
        let number = at(object, path.trim_start_matches('.')).and_then(Value::as_i64);
        let detail = match number.unwrap_or_default() {
            ..0 => "should be a non-negative integer".to_owned(),
            2_147_483_648.. => "should be less than or equal to 2147483647".to_owned(),
            _ => continue,
        };
        errors.push(FieldError::invalid(path.as_str(), number, detail));
    }
    errors
}

/// Whether what is complained about is as it was.
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
