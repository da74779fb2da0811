//! Which nodes a change of another object concerns.

use kube::ResourceExt as _;

use crate::api::v1alpha1::NodePodProbe;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue};
use crate::pods::{CachedNode, CachedPod, pod};

/// A pod changed: it is gone, or has ended, and its node probes it.
pub(super) fn pod_changed(
    probes: &Informer<NodePodProbe>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<ObjectKey>,
) {
    let pod = match change {
        Change::Deleted(pod) => pod,
        Change::Updated(old, pod) if old.facts().active && !pod.facts().active => pod,
        _ => return,
    };
    let key = ObjectKey::new("", pod::node(pod));
    let is_probed = probes.get(&key).is_some_and(|probes| {
        let mut entries = probes.spec.pod_probes.iter();
        entries.any(|entry| entry.uid == pod::uid(pod) && Some(&entry.namespace) == pod.namespace().as_ref())
    });
    if is_probed {
        queue.add(key);
    }
}

/// A node changed: it has no object yet, or should have none any more.
pub(super) fn node_changed(
    probes: &Informer<NodePodProbe>,
    change: &Change<'_, CachedNode>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (Change::Added(node) | Change::Updated(_, node) | Change::Deleted(node)) = change;
    let key = ObjectKey::new("", node.name());
    let is_here = !matches!(change, Change::Deleted(_));
    let goes = kube::Resource::meta(node.as_ref()).deletion_timestamp.is_some();
    let has_object = probes.get(&key).is_some();
    if has_object != (is_here && !goes) {
        queue.add(key);
    }
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
