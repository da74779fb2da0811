//! One step of a pod towards another revision, in place: into the hands of a hook, or the change itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::labels;
use kruise_api::v1alpha1::LifecycleHook;
use kruise_kit::json::merge;
use serde_json::{Value, json};

use super::apply::{self, Applied};
use super::resize;
use super::state::Change;
use crate::conditions::{not_ready_patch, start_patch};
use crate::lifecycle::{self, state};
use crate::{CachedPod, PatchText, PodAction, PodRef};
use crate::{pod, revision};

/// A pod, and the change that it is to take in place.
pub struct Step<'a> {
    /// The pod.
    pub pod: &'a Arc<CachedPod>,
    /// The change.
    pub change: &'a Change,
    /// The name of the revision that it leads to.
    pub revision: &'a str,
    /// The hook around updates in place.
    pub hook: Option<&'a LifecycleHook>,
    /// Whether pods have the label `pod-template-hash`.
    pub template_hash: bool,
    /// Whether a pod without a lifecycle state gets one.
    pub state_for_all: bool,
    /// Whether the pod is recreated when the server refuses the change.
    pub or_recreate: bool,
    /// When.
    pub now: Timestamp,
}

/// The actions of a step.
#[derive(Default)]
pub struct Stepped {
    /// The actions; none while a hook holds the pod.
    pub actions: Vec<PodAction>,
    /// When its grace period ends.
    pub requeue: Option<Duration>,
}

/// Plans the step.
pub fn plan(step: &Step<'_>) -> Stepped {
    let (pod, now) = (step.pod, step.now);
    let hooked = lifecycle::is_hooked(step.hook, pod);
    let held = |metadata| Stepped {
        actions: hold(step, &metadata),
        ..Stepped::default()
    };
    let before = lifecycle::state_of(pod);
    match before {
        "" | state::PREPARING_NORMAL | state::NORMAL if hooked => {
            return held(lifecycle::state_patch(state::PREPARING_UPDATE, now));
        }
        "" | state::PREPARING_NORMAL | state::NORMAL | state::UPDATING => {}
        state::UPDATED => {
            let patch = lifecycle::state_patch_with_hook(pod, step.hook, state::PREPARING_UPDATE, now);
            return held(patch);
        }
        state::PREPARING_UPDATE if hooked => return Stepped::default(),
        state::PREPARING_UPDATE => {}
        other => {
            let message = format!(
                "not allowed to in-place update pod {} in state {other}",
                pod::name(pod)
            );
            return Stepped {
                actions: vec![PodAction::Fail(message)],
                ..Stepped::default()
            };
        }
    }
    let Applied { mut patch, resize } = apply::begin(pod, step.change, now);
    let mut metadata = json!({ "labels": { labels::REVISION_HASH: step.change.revision } });
    if step.state_for_all || !before.is_empty() {
        merge(&mut metadata, lifecycle::state_patch(state::UPDATING, now));
    }
    if step.template_hash {
        let label = revision::short(step.revision);
        merge(
            &mut metadata,
            json!({ "labels": { labels::TEMPLATE_HASH: label } }),
        );
    }
    merge(&mut patch, json!({ "metadata": metadata }));
    let grace_s = u64::try_from(step.change.grace_seconds).unwrap_or(0);
    Stepped {
        actions: vec![PodAction::UpdateInPlace {
            pod: PodRef::of(pod),
            status_patch: start_patch(pod, now)
                .filter(|_| resize::leaves_service(pod, step.change))
                .map(PatchText::from),
            resize: resize.map(PatchText::from),
            patch: patch.into(),
            revision: step.revision.to_owned(),
            or_recreate: step.or_recreate,
        }],
        requeue: (grace_s > 0).then(|| Duration::from_secs(grace_s)),
    }
}

/// Leaves the pod to its hook.
fn hold(step: &Step<'_>, metadata: &Value) -> Vec<PodAction> {
    let mut actions = Vec::new();
    if step
        .hook
        .is_some_and(|hook| hook.mark_pod_not_ready == Some(true))
    {
        let patch = not_ready_patch(step.pod, lifecycle::PRE_UPDATE_KEY, step.now);
        actions.extend(patch.map(|patch| PodAction::PatchPodStatus {
            pod: PodRef::of(step.pod),
            patch: patch.into(),
        }));
    }
    actions.push(PodAction::PatchPod {
        pod: PodRef::of(step.pod),
        patch: json!({ "metadata": metadata }).into(),
    });
    actions
}
