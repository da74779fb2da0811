//! Which pods become an owner's, and which cease to be.

use std::sync::Arc;

use kruise_kit::Owner;
use kube::core::{Selector, SelectorExt};
use serde_json::json;

use crate::{CachedPod, PodAction, PodRef, pod};

/// Releases those of the owner's pods that do not match its selector any more.
pub fn release(owner: &Owner, selector: &Selector, pods: &[Arc<CachedPod>]) -> Vec<PodAction> {
    let stray = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && !selector.matches(pod::all_labels(pod)));
    stray
        .map(|pod| PodAction::PatchPod {
            pod: PodRef::of(pod),
            patch: json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": owner.uid }] } })
                .into(),
        })
        .collect()
}

/// Makes a pod that has no owner the owner's.
pub fn adopt(owner: &Owner, pod: &CachedPod) -> PodAction {
    PodAction::PatchPod {
        pod: PodRef::of(pod),
        patch: json!({ "metadata": { "ownerReferences": [owner.reference()] } }).into(),
    }
}
