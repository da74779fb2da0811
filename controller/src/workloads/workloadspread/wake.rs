//! Which spreads a change of another object concerns.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::{Resource, ResourceExt as _};

use super::plan::version_of;
use crate::api::v1alpha1::{CloneSet, TargetReference, WorkloadSpread};
use crate::injection::spreads::matched::Matched;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue, controller_of};
use crate::pods::CachedPod;
use crate::pods::pod::is_unschedulable;
use crate::targets::{Scaled, Scales, is_same};

/// A pod changed.
pub(super) fn pod_changed(change: &Change<'_, CachedPod>, queue: &WorkQueue<ObjectKey>) {
    let pod = match change {
        Change::Added(pod) | Change::Deleted(pod) => pod,
        Change::Updated(old, new) => {
            let ends = old.facts().active && !new.facts().active;
            // The real manager learns of a pod without a node at its next pass.
            let fails = !is_unschedulable(old) && is_unschedulable(new);
            if !ends && !fails && version_of(old) == version_of(new) {
                return;
            }
            new
        }
    };
    if let Some(matched) = Matched::of(pod).filter(|matched| !matched.name.is_empty()) {
        queue.add(ObjectKey::new(
            &pod.namespace().unwrap_or_default(),
            &matched.name,
        ));
    }
}

/// Queues the first spread over a workload.
fn add(
    spreads: &Informer<WorkloadSpread>,
    namespace: &str,
    workload: &TargetReference,
    queue: &WorkQueue<ObjectKey>,
) {
    let of_namespace = spreads.in_namespace(namespace);
    let is_over = |spread: &WorkloadSpread| {
        let target = spread.spec.target_ref.as_ref();
        target.is_some_and(|target| is_same(target, workload))
    };
    if let Some(spread) = of_namespace.iter().find(|spread| is_over(spread)) {
        queue.add(ObjectKey::of(spread.as_ref()));
    }
}

/// The reference to an object.
fn reference<K: Resource<DynamicType = ()>>(object: &K) -> TargetReference {
    TargetReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
    }
}

/// A workload changed.
pub(super) fn workload_changed<K: Resource<DynamicType = ()>>(
    spreads: &Informer<WorkloadSpread>,
    change: &Change<'_, Scaled<K>>,
    queue: &WorkQueue<ObjectKey>,
) {
    let workload = match change {
        Change::Updated(old, new) if old.replicas() == new.replicas() && old.template() == new.template() => {
            return;
        }
        Change::Added(workload) | Change::Updated(_, workload) | Change::Deleted(workload) => workload,
    };
    let namespace = workload.namespace().unwrap_or_default();
    add(spreads, &namespace, &reference(workload.as_ref()), queue);
}

/// A ReplicaSet changed, which may be a Deployment's.
pub(super) fn replica_set_changed(
    spreads: &Informer<WorkloadSpread>,
    change: &Change<'_, Scaled<ReplicaSet>>,
    queue: &WorkQueue<ObjectKey>,
) {
    let set = match change {
        Change::Updated(old, new) if old.replicas() == new.replicas() => return,
        Change::Added(set) | Change::Updated(_, set) | Change::Deleted(set) => set,
    };
    let namespace = set.namespace().unwrap_or_default();
    add(spreads, &namespace, &reference(set.as_ref()), queue);
    if let Some(owner) = controller_of(set.meta()) {
        add(spreads, &namespace, &owner.into(), queue);
    }
}

/// A CloneSet changed.
pub(super) fn clone_set_changed(
    spreads: &Informer<WorkloadSpread>,
    change: &Change<'_, CloneSet>,
    queue: &WorkQueue<ObjectKey>,
) {
    let revisions = |old: &CloneSet, new: &CloneSet| {
        let old = old
            .status
            .as_ref()
            .map_or("", |status| &status.current_revision)
            .to_owned();
        let new = new
            .status
            .as_ref()
            .map_or("", |status| &status.update_revision)
            .to_owned();
        (old, new)
    };
    let set = match change {
        Change::Updated(old, new) => {
            let (current, update) = revisions(old, new);
            if old.spec.replicas == new.spec.replicas && current == update {
                return;
            }
            new
        }
        Change::Added(set) | Change::Deleted(set) => set,
    };
    add(
        spreads,
        &set.namespace().unwrap_or_default(),
        &reference(set.as_ref()),
        queue,
    );
}
