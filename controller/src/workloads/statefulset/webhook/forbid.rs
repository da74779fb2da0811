//! Changes of fields that must stay.

use pod_rules::FieldError;
use serde_json::{Value, json};

use super::mutate::canonical_spec;
use crate::kit::json::difference;

/// Fields of the spec that may change.
const MUTABLE: [&str; 11] = [
    "replicas",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "scaleStrategy",
    "volumeClaimTemplates",
    "volumeClaimUpdateStrategy",
    "reserveOrdinals",
    "lifecycle",
    "revisionHistoryLimit",
    "ordinals",
];

/// The error of an update that changes another field.
pub(super) fn update(new: &Value, old: &Value) -> Option<FieldError> {
    let rest = |set: &Value| {
        let mut spec = canonical_spec(set.get("spec")?, true).ok()?;
        spec.as_object_mut()?
            .retain(|key, _| !MUTABLE.contains(&key.as_str()));
        Some(spec)
    };
    (rest(new)? != rest(old)?).then(|| {
        FieldError::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'reserveOrdinals', \
             'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', `volumeClaimTemplates`, \
             `VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden",
        )
    })
}

/// The refusal of an update that pods cannot take in place, for a set that updates no other way.
pub(super) fn in_place_only(new: &Value, old: &Value) -> Option<String> {
    let policy = new.pointer("/spec/updateStrategy/rollingUpdate/podUpdatePolicy");
    if policy.and_then(Value::as_str) != Some("InPlaceOnly") {
        return None;
    }
    let template = |set: &Value| {
        let spec = canonical_spec(set.get("spec")?, true).ok()?;
        Some(
            spec.pointer("/template/spec")
                .cloned()
                .unwrap_or_else(|| json!({})),
        )
    };
    let mut changes = Vec::new();
    difference("", &template(old)?, &template(new)?, &mut changes);
    let (op, path) = changes
        .into_iter()
        .find(|(op, path)| *op != "replace" || !is_image(path))?;
    Some(format!(
        "invalid template modified with InPlaceOnly strategy: {op} {path}, currently only image update is allowed for \
         InPlaceOnly"
    ))
}

/// Whether a path has `/containers/N/image` in it, wherever.
fn is_image(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts.windows(3).any(|parts| {
        let [list, index, field] = parts else { return false };
        let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        *list == "containers" && is_index && field.starts_with("image")
    })
}
