//! Which markers a change of a pod concerns.

use std::sync::Arc;

use kube::ResourceExt as _;

use crate::api::v1alpha1::PodProbeMarker;
use crate::injection::probes::MARKERS;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue, selector};
use crate::pods::pod::{self, Pod};
use crate::pods::{CachedNode, CachedPod};

/// Whether the containers of a pod can be probed: it runs on a node, and its init containers have ended.
pub(super) fn is_probed(pod: &Pod) -> bool {
    pod::is_active(pod) && !pod::node(pod).is_empty() && pod::is_true(pod, "Initialized")
}

/// The caches that say which markers a pod has.
pub(super) struct Waker {
    pub(super) markers: Informer<PodProbeMarker>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) serverless: bool,
}

impl Waker {
    /// A pod changed.
    pub(super) fn pod_changed(&self, change: &Change<'_, CachedPod>, queue: &WorkQueue<ObjectKey>) {
        match change {
            Change::Added(pod) | Change::Deleted(pod) => {
                if is_probed(pod) {
                    self.add(pod, |_| true, queue);
                }
            }
            Change::Updated(old, new) => self.pod_updated(old, new, queue),
        }
    }

    fn pod_updated(&self, old: &CachedPod, new: &CachedPod, queue: &WorkQueue<ObjectKey>) {
        if !is_probed(old) && !is_probed(new) {
            return;
        }
        if is_probed(old) != is_probed(new) || old.metadata.labels != new.metadata.labels {
            self.add(old, |_| true, queue);
            return self.add(new, |_| true, queue);
        }
        let node = self.nodes.get(&ObjectKey::new("", pod::node(new)));
        if !node.is_some_and(|node| node.is_virtual()) {
            if old.status.ip != new.status.ip {
                self.add(new, |_| true, queue);
            }
        } else if self.serverless {
            let changed = |kind: &str| {
                let status = |pod| pod::condition(pod, kind).map(|condition| condition.status.clone());
                status(new).is_some() && status(old) != status(new)
            };
            let marks = |marker: &PodProbeMarker| {
                let mut probes = marker.spec.probes.iter();
                probes.any(|probe| changed(&probe.pod_condition_type))
            };
            self.add(new, marks, queue);
        }
    }

    /// Queues the markers of a pod for which `is_wanted` holds: those that it names, or those that select it.
    fn add(&self, pod: &Pod, is_wanted: impl Fn(&PodProbeMarker) -> bool, queue: &WorkQueue<ObjectKey>) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let named = pod::annotation(pod, MARKERS).filter(|names| !names.is_empty());
        let markers: Vec<Arc<PodProbeMarker>> = match named {
            Some(names) => names
                .split(',')
                .filter_map(|name| self.markers.get(&ObjectKey::new(namespace, name)))
                .collect(),
            None => {
                let labels = pod::all_labels(pod);
                let selects = |marker: &Arc<PodProbeMarker>| {
                    selector::selects(&marker.spec.selector, labels).unwrap_or(false)
                };
                let of_namespace = self.markers.in_namespace(namespace).into_iter();
                of_namespace.filter(selects).collect()
            }
        };
        for marker in markers.iter().filter(|marker| is_wanted(marker)) {
            queue.add(ObjectKey::new(namespace, &marker.name_any()));
        }
    }
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
