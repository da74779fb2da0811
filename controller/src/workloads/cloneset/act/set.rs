//! Writing the set itself: its status, and the names of pods that are gone out of its spec.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::api::v1alpha1::{CloneSet, CloneSetStatus};
use crate::kit::{ActError, ObjectKey, requests};
use crate::pods::actor::Actor;

/// Writes the status and gives back the set as it is then.
pub(crate) async fn write_status(
    actor: &Actor,
    set: &CloneSet,
    status: &CloneSetStatus,
) -> Result<CloneSet, ActError> {
    let api = actor.api::<CloneSet>(&ObjectKey::of(set));
    requests::write_status(&api, set, |latest| latest.status = Some(status.clone())).await
}

/// Leaves only the names in `keep` in `spec.scaleStrategy.podsToDelete`.
pub(super) async fn trim_pods_to_delete(
    actor: &Actor,
    set: &CloneSet,
    keep: &[String],
) -> Result<(), ActError> {
    let names = if keep.is_empty() { Value::Null } else { json!(keep) };
    let patch = json!({
        "metadata": { "uid": set.uid(), "resourceVersion": set.resource_version() },
        "spec": { "scaleStrategy": { "podsToDelete": names } },
    });
    let api = actor.api::<CloneSet>(&ObjectKey::of(set));
    api.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}
