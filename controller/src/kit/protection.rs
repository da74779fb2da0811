//! Protection from deletion.

use serde_json::Value;

use crate::api::labels;

/// Why an object with replicas must not be deleted: the label `policy.kruise.io/delete-protection`.
pub(crate) fn deletion(set: &Value) -> Option<String> {
    let key = labels::DELETION_PROTECTION;
    let label = set.get("metadata")?.get("labels")?.get(key)?.as_str()?;
    let message = format!("forbidden by ResourcesProtectionDeletion for {key}={label}");
    let replicas = set.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    match label {
        "Always" => Some(message),
        "Cascading" if replicas > 0 => Some(format!("{message} and replicas {replicas}>0")),
        _ => None,
    }
}
