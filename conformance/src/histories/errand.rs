//! A request of the user about any object.

use futures::future::join_all;
use kube::api::{DeleteParams, Patch, PatchParams};
use shared_json::{Value, json};

use crate::action::{ActionError, Kubectl};
use crate::history::text;

/// One request. The objects name their version, their kind and themselves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Errand {
    /// Creates the object.
    Create(Value),
    /// Changes the object: this is a merge patch of it.
    Patch(Value),
    /// Deletes the object.
    Delete(Value),
    /// Evicts the pod of this name.
    Evict(String),
}

/// Carries out all of them at the same time. A refusal is an answer like any other.
pub(super) async fn carry_out(kubectl: &Kubectl, errands: &[Errand]) {
    let results = join_all(errands.iter().map(|errand| one(kubectl, errand))).await;
    drop(results);
}

async fn one(kubectl: &Kubectl, errand: &Errand) -> Result<(), ActionError> {
    match errand {
        Errand::Create(object) => kubectl.create(object).await,
        Errand::Patch(object) => {
            let api = kubectl.api_of(object).await?;
            let name = text(object, "/metadata/name");
            api.patch(&name, &PatchParams::default(), &Patch::Merge(object))
                .await?;
            Ok(())
        }
        Errand::Delete(object) => {
            let api = kubectl.api_of(object).await?;
            let name = text(object, "/metadata/name");
            api.delete(&name, &DeleteParams::default()).await?;
            Ok(())
        }
        Errand::Evict(pod) => {
            let namespace = kubectl.namespace();
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
            let metadata = json!({"name": pod, "namespace": namespace});
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
            kubectl.request("POST", &path, Some(&eviction)).await?;
            Ok(())
        }
    }
}
