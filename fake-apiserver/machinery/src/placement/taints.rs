//! Taints and tolerations.

use shared_json::Value;

use crate::meta::{list, text};

/// Whether a toleration is for a taint.
pub fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (effect, key) = (text(toleration, "effect"), text(toleration, "key"));
    let exists = text(toleration, "operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "effect"))
        && ((key.is_empty() && exists) || key == text(taint, "key"))
        && (exists || text(toleration, "value") == text(taint, "value"))
}

/// Whether a pod tolerates all taints of these effects.
pub fn tolerates_all(pod: &Value, taints: &[Value], effects: &[&str]) -> bool {
    taints
        .iter()
        .filter(|taint| effects.contains(&text(taint, "effect")))
        .all(|taint| {
            list(pod, "spec.tolerations")
                .iter()
                .any(|toleration| tolerates(toleration, taint))
        })
}
