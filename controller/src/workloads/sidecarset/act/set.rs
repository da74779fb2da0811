//! Writing the set's status, and labels of its revisions.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::api::labels;
use crate::api::v1beta1::{SidecarSet, SidecarSetStatus};
use crate::kit::{ActError, Owner, requests};
use crate::pods::actor::Actor;

/// Writes the status, and gives the set as it is then.
pub(in crate::workloads::sidecarset) async fn write_status(
    actor: &Actor,
    set: &SidecarSet,
    status: &SidecarSetStatus,
) -> Result<SidecarSet, ActError> {
    let api: Api<SidecarSet> = Api::all(actor.client.clone());
    requests::write_status(&api, set, |latest| latest.status = Some(status.clone())).await
}

/// Labels a revision with the set's custom version. `owner` is the set, in the namespace of the revisions.
pub(in crate::workloads::sidecarset) async fn label_revision(
    actor: &Actor,
    owner: &Owner,
    name: &str,
    version: &str,
) -> Result<(), ActError> {
    let patch = json!({ "metadata": { "labels": { labels::SIDECARS_CUSTOM_VERSION: version } } });
    let api = actor.api::<ControllerRevision>(&owner.key);
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}
