//! Fields that an update may not change.

use serde_json::{Value, json};

use crate::field_error::FieldError;
use crate::meta::at;

/// How the refusal is worded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Words {
    /// `Invalid value: …: field is immutable`
    Immutable,
    /// `Forbidden: …`
    Forbidden(&'static str),
    /// `Invalid value: {…}: cannot change roleRef`
    RoleRef,
}

/// The refusals of changes to any of these fields.
pub(super) fn check(fields: &[(&str, Words)], object: &Value, old: &Value) -> Vec<FieldError> {
    let changed = fields
        .iter()
        .filter(|(path, _)| at(object, path) != at(old, path));
    changed
        .map(|(path, words)| {
            let value = at(object, path).cloned().unwrap_or_default();
            match words {
                Words::Immutable => FieldError::invalid(*path, value, "field is immutable"),
                Words::Forbidden(detail) => FieldError::forbidden(*path, *detail),
                Words::RoleRef => {
                    let text = |field: &str| at(&value, field).cloned().unwrap_or_else(|| Value::from(""));
                    // The real server prints its internal struct.
                    let shown =
                        json!({"APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name")});
                    FieldError::invalid(*path, shown, "cannot change roleRef")
                }
            }
        })
        .collect()
}

/// What `immutable: true` means to a ConfigMap or a Secret: its data stay, and so does the mark.
pub(super) fn check_data(object: &Value, old: &Value) -> Vec<FieldError> {
    let is_set = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_set(old) {
        return Vec::new();
    }
    let refuse = |field: &str| FieldError::forbidden(field, "field is immutable when `immutable` is set");
    let mut errors = Vec::new();
    if !is_set(object) {
        errors.push(refuse("immutable"));
    }
    errors.extend(
        ["data", "binaryData"]
            .into_iter()
            .filter(|field| object.get(field) != old.get(field))
            .map(refuse),
    );
    errors
}
