//! Taints and tolerations.

use shared_json::Value;

use crate::fields::Fields as _;

/// Whether a toleration is for a taint.
pub fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (effect, key) = (toleration.text("effect"), toleration.text("key"));
    let exists = toleration.text("operator") == "Exists";
    (effect.is_empty() || effect == taint.text("effect"))
        && ((key.is_empty() && exists) || key == taint.text("key"))
        && (exists || toleration.text("value") == taint.text("value"))
}

/// Whether a pod tolerates all taints of these effects.
pub fn tolerates_all(pod: &Value, taints: &[Value], effects: &[&str]) -> bool {
    taints
        .iter()
        .filter(|taint| effects.contains(&taint.text("effect")))
        .all(|taint| {
            pod.map("spec")
                .list("tolerations")
                .iter()
                .any(|toleration| tolerates(toleration, taint))
        })
}
