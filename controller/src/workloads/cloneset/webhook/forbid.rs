//! What is refused because of what is there: deletion of protected sets, and changes of fields that must stay.

use serde_json::{Value, json};

use super::mutate::canonical_spec;
use crate::api::labels;
use pod_rules::FieldError;

/// Fields of the spec that may change.
const MUTABLE: [&str; 9] = [
    "replicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "volumeClaimTemplates",
    "revisionHistoryLimit",
    "progressDeadlineSeconds",
];

/// Why a set must not be deleted: the label `policy.kruise.io/delete-protection`.
pub(super) fn deletion(set: &Value) -> Option<String> {
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

/// What an update must not change.
pub(super) fn update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (Ok(new), Ok(old)) = (spec(new), spec(old)) else {
        return errors;
    };
    let rest = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(map) = spec.as_object_mut() {
            map.retain(|key, _| !MUTABLE.contains(&key.as_str()));
        }
        spec
    };
    if rest(&new) != rest(&old) {
        errors.push(FieldError::forbidden(
            "spec",
            "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', \
             'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden",
        ));
    }
    if new.pointer("/updateStrategy/type").and_then(Value::as_str) == Some("InPlaceOnly") {
        let empty = json!({});
        let template = |spec: &Value| {
            spec.pointer("/template/spec")
                .cloned()
                .unwrap_or_else(|| empty.clone())
        };
        let mut changes = Vec::new();
        difference("", &template(&old), &template(&new), &mut changes);
        if let Some((op, path)) = changes
            .iter()
            .find(|(op, path)| *op != "replace" || !is_image(path))
        {
            let detail =
                format!("only allowed to update images in spec for InPlaceOnly, but found {op} {path}");
            errors.push(FieldError::forbidden("spec", detail));
        }
    }
    errors
}

fn spec(set: &Value) -> Result<Value, String> {
    canonical_spec(set.get("spec").unwrap_or(&Value::Null))
}

fn is_image(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts.as_slice(), ["", "containers", _, "image"])
}

/// The operations of a JSON patch that leads from one value to the other.
fn difference(path: &str, old: &Value, new: &Value, changes: &mut Vec<(&'static str, String)>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => difference(&format!("{path}/{key}"), before, value, changes),
                    None => changes.push(("add", format!("{path}/{key}"))),
                }
            }
            changes.extend(
                old.keys()
                    .filter(|key| !new.contains_key(*key))
                    .map(|key| ("remove", format!("{path}/{key}"))),
            );
        }
        (Value::Array(old), Value::Array(new)) => {
            for (at, (before, value)) in old.iter().zip(new).enumerate() {
                difference(&format!("{path}/{at}"), before, value, changes);
            }
            changes.extend((old.len()..new.len()).map(|at| ("add", format!("{path}/{at}"))));
            changes.extend((new.len()..old.len()).map(|at| ("remove", format!("{path}/{at}"))));
        }
        (old, new) if old != new => changes.push(("replace", path.to_owned())),
        _ => {}
    }
}
