//! Changes of fields that must stay.

use pod_rules::FieldError;
use serde_json::Value;

use super::mutate::{canonical_spec, is_v1alpha1};

/// Fields of the spec that may change.
const MUTABLE: [&str; 7] = [
    "burstReplicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "revisionHistoryLimit",
];

/// The error of an update that changes another field.
pub(super) fn update(new: &Value, old: &Value) -> Option<FieldError> {
    let rest = |set: &Value| {
        let mut spec = canonical_spec(set.get("spec")?).ok()?;
        spec.as_object_mut()?
            .retain(|key, _| !MUTABLE.contains(&key.as_str()));
        Some(spec)
    };
    // The older text has two blanks in place of the field.
    let scale = match is_v1alpha1(new) {
        true => " ",
        false => "'scaleStrategy', ",
    };
    (rest(new)? != rest(old)?).then(|| {
        FieldError::forbidden(
            "spec",
            format!(
                "updates to daemonset spec for fields other than 'BurstReplicas', 'template', 'lifecycle', {scale}'updateStrategy', \
                 'minReadySeconds', and 'revisionHistoryLimit' are forbidden"
            ),
        )
    })
}
