//! One action.

use client_kit::EventType;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::kit::{ActError, Owner};
use crate::pods::PodAction;
use crate::pods::actor::Actor;
use crate::workloads::sidecarset::plan::Action;

/// Carries out an action.
///
/// # Errors
/// Those of the requests, and the failure that the action says.
pub(in crate::workloads::sidecarset) async fn perform(
    actor: &Actor,
    set: &Owner,
    action: &Action,
) -> Result<(), ActError> {
    match action {
        Action::Set(action) => actor.perform(set, action).await,
        Action::Pod { namespace, action } => actor.perform(&set.in_namespace(namespace), action).await,
        Action::Empty {
            namespace,
            pod,
            patch,
        } => {
            let action = PodAction::PatchPod {
                pod: pod.clone(),
                patch: patch.clone(),
            };
            let result = actor.perform(&set.in_namespace(namespace), &action).await;
            let about = ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name.clone()),
                namespace: Some(namespace.clone()),
                uid: Some(pod.uid.clone()),
                ..ObjectReference::default()
            };
            let (kind, reason, message) = match &result {
                Ok(()) => (
                    EventType::Normal,
                    "ResetContainerSucceed",
                    "reset sidecar container image empty successfully".to_owned(),
                ),
                Err(error) => (
                    EventType::Warning,
                    "ResetContainerFailed",
                    format!("reset sidecar container image empty failed: {error}"),
                ),
            };
            actor.recorder.event(&about, kind, reason, message);
            result
        }
    }
}
