//! The pod-readiness controller: a pod with the readiness gate `KruisePodReady` is in service unless somebody says no.

use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::labels;
use crate::cloneset::lifecycle::rfc3339;
use crate::pod::{self, Pod};

/// Whether nobody has said anything about the pod yet.
pub(crate) fn is_due(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod::has_gate(pod, labels::KRUISE_POD_READY)
        && pod::condition(pod, labels::KRUISE_POD_READY).is_none()
}

/// The patch of its status.
fn patch(pod: &Pod, now: Timestamp) -> Value {
    json!({
        "metadata": { "uid": pod::uid(pod) },
        "status": { "conditions": [
            { "type": labels::KRUISE_POD_READY, "status": "True", "lastTransitionTime": rfc3339(now) },
        ] },
    })
}

/// Says that `pod` is in service.
///
/// # Errors
/// Those of the request; a pod that is gone by now is none.
pub(crate) async fn set_ready(client: &Client, pod: &Pod, now: Timestamp) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let patch = patch(pod, now);
    match api
        .patch_status(pod::name(pod), &PatchParams::default(), &Patch::Strategic(&patch))
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        result => result.map(drop),
    }
}
