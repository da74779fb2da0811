//! Which PersistentPodStates a change of another object concerns.

use std::sync::Arc;

use kube::{Resource, ResourceExt as _};

use super::auto;
use super::controller::Key;
use crate::api::v1alpha1::{PersistentPodState, TargetReference};
use crate::injection::pod_states::INJECTED;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue, controller_of};
use crate::pods::{CachedPod, pod};
use crate::targets::is_same;

/// Has those looked at whose workload it is.
pub(super) fn queue_states(
    states: &Informer<PersistentPodState>,
    workload: &TargetReference,
    namespace: &str,
    queue: &WorkQueue<Key>,
) {
    for state in states.in_namespace(namespace) {
        if is_same(&state.spec.target_ref, workload) {
            queue.add(Key::State(ObjectKey::of(state.as_ref())));
        }
    }
}

/// A set changed. Most changes of a set are those of its status, which wakes no state.
pub(super) fn set_changed<S: Resource<DynamicType = ()>>(
    states: &Informer<PersistentPodState>,
    change: &Change<'_, S>,
    queue: &WorkQueue<Key>,
) {
    let (before, set): (Option<&Arc<S>>, &Arc<S>) = match change {
        Change::Added(set) | Change::Deleted(set) => (None, set),
        Change::Updated(old, set) => (Some(old), set),
    };
    let workload = TargetReference {
        api_version: S::api_version(&()).into_owned(),
        kind: S::kind(&()).into_owned(),
        name: set.name_any(),
    };
    let namespace = set.namespace().unwrap_or_default();
    let spec = |set: &S| (set.meta().generation, set.meta().deletion_timestamp.is_some());
    if before.is_none_or(|before| spec(before) != spec(set)) {
        queue_states(states, &workload, &namespace, queue);
    }
    if before.is_none_or(|before| auto::wish(before.meta()) != auto::wish(set.meta())) {
        queue.add(Key::Workload(namespace, workload));
    }
}

/// A pod changed: it came to be ready, begins to go, or is gone.
pub(super) fn pod_changed(
    states: &Informer<PersistentPodState>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<Key>,
) {
    let stand = |pod: &CachedPod| (pod::is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let pod = match change {
        Change::Added(pod) | Change::Deleted(pod) => pod,
        Change::Updated(old, pod) if stand(old) != stand(pod) => pod,
        Change::Updated(..) => return,
    };
    let namespace = pod.namespace().unwrap_or_default();
    if let Some(name) = pod::annotation(pod, INJECTED).filter(|name| !name.is_empty()) {
        queue.add(Key::State(ObjectKey::new(&namespace, name)));
    }
    if let Some(owner) = controller_of(&pod.metadata) {
        queue_states(states, &owner.into(), &namespace, queue);
    }
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
