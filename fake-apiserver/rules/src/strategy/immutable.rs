//! Fields that an update may not change.

use machinery::meta::at;
use pod_rules::field_error::FieldError;
use shared_json::Value;

/// The refusals of changes to any of these fields.
pub(super) fn check(fields: &[&str], object: &Value, old: &Value) -> Vec<FieldError> {
    let changed = fields.iter().filter(|path| at(object, path) != at(old, path));
    changed
        .map(|path| {
            let value = at(object, path).cloned().unwrap_or_default();
            FieldError::invalid(*path, value, "field is immutable")
        })
        .collect()
}
