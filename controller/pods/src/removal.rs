//! The end of a pod: into the hands of the hook before deletion, or the deletion itself.

use jiff::Timestamp;
use kruise_api::v1alpha1::LifecycleHook;
use serde_json::json;

use crate::conditions::not_ready_patch;
use crate::lifecycle::{self, state};
use crate::pod::Pod;
use crate::{PodAction, PodRef};

/// Deletes a pod and `claims`, or leaves it to `hook`: no actions where the hook has it already.
pub fn plan(pod: &Pod, hook: Option<&LifecycleHook>, claims: Vec<String>, now: Timestamp) -> Vec<PodAction> {
    let mut actions = Vec::new();
    if !lifecycle::is_hooked(hook, pod) {
        actions.push(PodAction::DeletePod {
            pod: PodRef::of(pod),
            claims,
        });
    } else if lifecycle::state_of(pod) != state::PREPARING_DELETE {
        if hook.is_some_and(|hook| hook.mark_pod_not_ready == Some(true)) {
            let patch = not_ready_patch(pod, lifecycle::PRE_DELETE_KEY, now);
            actions.extend(patch.map(|patch| PodAction::PatchPodStatus {
                pod: PodRef::of(pod),
                patch: patch.into(),
            }));
        }
        actions.push(PodAction::PatchPod {
            pod: PodRef::of(pod),
            patch: json!({ "metadata": lifecycle::state_patch(state::PREPARING_DELETE, now) }).into(),
        });
    }
    actions
}
