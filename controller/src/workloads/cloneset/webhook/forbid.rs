//! Changes of fields that must stay.

use serde_json::{Value, json};

use super::mutate::canonical_spec;
use crate::kit::json::difference;
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

/// Errors about fields that an update must not change.
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
