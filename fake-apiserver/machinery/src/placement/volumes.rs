//! Matching of volumes and claims.

use shared_json::Value;

use crate::meta::{ObjectMeta as _, at, list, string_map, text};
use crate::selector::matches_selector;
use crate::types::Quantity;

/// The storage class of a volume or claim; empty if it has none.
pub fn class_of(object: &Value) -> &str {
    text(object, "spec.storageClassName")
}

/// The amount of storage at a path; zero if nothing is there.
pub fn size(object: &Value, path: &str) -> Quantity {
    at(object, path).map_or(Quantity::count(0), Quantity::of)
}

/// The volume mode, with its default.
pub fn mode(object: &Value) -> &str {
    match text(object, "spec.volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// The name of the attributes class; empty if there is none.
pub fn attributes_of(object: &Value) -> &str {
    text(object, "spec.volumeAttributesClassName")
}

/// Whether a volume is kept for a claim.
pub fn is_bound_to(volume: &Value, claim: &Value) -> bool {
    let reference = at(volume, "spec.claimRef");
    reference.is_some_and(|reference| {
        text(reference, "name") == claim.name()
            && text(reference, "namespace") == claim.namespace()
            && (text(reference, "uid").is_empty() || text(reference, "uid") == claim.uid())
    })
}

/// Whether a volume could serve a claim.
pub fn fits(volume: &Value, claim: &Value) -> bool {
    let selected = match at(claim, "spec.selector") {
        Some(selector) => matches_selector(Some(selector), string_map(volume, "labels")),
        None => true,
    };
    // One that is kept for the claim serves it whatever its class and labels.
    let kept = is_bound_to(volume, claim);
    let free = kept || at(volume, "spec.claimRef").is_none_or(Value::is_null);
    let modes = list(claim, "spec.accessModes")
        .iter()
        .all(|mode| list(volume, "spec.accessModes").contains(mode));
    let (has, wants) = (
        size(volume, "spec.capacity.storage"),
        size(claim, "spec.resources.requests.storage"),
    );
    free && (kept || selected)
        && modes
        && (kept || class_of(volume) == class_of(claim))
        && mode(volume) == mode(claim)
        && attributes_of(volume) == attributes_of(claim)
        && has.nanos() >= wants.nanos()
        && !volume.is_terminating()
        && matches!(
            text(volume, "status.phase"),
            "" | "Pending" | "Available" | "Bound"
        )
}
