//! The messages of events about StatefulSets.

use serde_json::Value;

use crate::kit::Kind;
use crate::pods::actor::{Words, updated_in_place};

/// The messages of events.
pub(in crate::workloads::statefulset) const WORDS: Words = Words {
    created: |set, pod| format!("create Pod {pod} in StatefulSet {} successful", set.key.name),
    not_created: |set, pod, _, error| {
        let message = format!(
            "create Pod {pod} in StatefulSet {} failed error: {error}",
            set.key.name
        );
        (error.kind != Kind::AlreadyExists).then_some(message)
    },
    claim_created: |set, pod, claim| {
        let set = &set.key.name;
        Some(format!(
            "create Claim {claim} Pod {pod} in StatefulSet {set} success"
        ))
    },
    claim_not_created: |set, pod, claim, error| {
        let claim = claim.pointer("/metadata/name").and_then(Value::as_str);
        let (claim, set) = (claim.unwrap_or_default(), &set.key.name);
        format!("create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}")
    },
    updated_in_place,
    deleted: |set, pod| format!("delete Pod {pod} in StatefulSet {} successful", set.key.name),
    not_deleted: |set, pod, error| {
        let of_set = format!(
            "delete Pod {pod} in StatefulSet {} failed error: {error}",
            set.key.name
        );
        vec![of_set, format!("failed to delete pod {pod}: {error}")]
    },
};
