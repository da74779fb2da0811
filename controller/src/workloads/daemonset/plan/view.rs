//! The questions of the rules about a set, its pods and the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt as _;
use pod_rules::nodes::daemon::Fit;

use crate::api::labels;
use crate::api::v1alpha1::LifecycleHook;
use crate::api::v1beta1::DaemonSet;
use crate::pods::availability::{has_revision, serves};
use crate::pods::lifecycle::state;
use crate::pods::{CachedNode, CachedPod, Revisions, pod, revision};
use crate::workloads::daemonset::gates::Gates;
use crate::workloads::daemonset::nodes::Form;
use crate::workloads::daemonset::observe::Observed;
use crate::workloads::daemonset::settings::Settings;

/// A node, and the set's pods on it or for it.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    /// The node.
    pub(super) node: &'a CachedNode,
    /// How it fits the set.
    pub(super) fit: Fit,
    /// The pods: those on the node before those that are on their way to it, the oldest first.
    pub(super) pods: Vec<&'a Arc<CachedPod>>,
}

/// The pods of a node that are not being deleted: at most one of each kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    /// The pod of the update revision.
    pub(super) new: Option<&'a Arc<CachedPod>>,
    /// The pod of another revision.
    pub(super) old: Option<&'a Arc<CachedPod>>,
}

/// The observed set, with its numbers worked out and its pods by node.
pub(super) struct View<'a> {
    pub(super) observed: &'a Observed,
    pub(super) revisions: &'a Revisions,
    pub(super) gates: Gates,
    pub(super) settings: Settings,
    /// All nodes, by name.
    pub(super) places: Vec<Place<'a>>,
    /// The pods of nodes that are not there.
    pub(super) strays: Vec<&'a Arc<CachedPod>>,
    /// How many nodes are to have a pod.
    pub(super) desired: i32,
    /// The number of the template, if the set has one.
    generation: Option<String>,
}

impl<'a> View<'a> {
    pub(super) fn new(observed: &'a Observed, revisions: &'a Revisions, gates: Gates) -> Self {
        let form = Form::of(&observed.set);
        let mut by_node: BTreeMap<&str, Vec<&Arc<CachedPod>>> = BTreeMap::new();
        for pod in &observed.pods {
            by_node.entry(pod::node_or_target(pod)).or_default().push(pod);
        }
        // A pod for no node in particular is left alone.
        by_node.remove("");
        let places: Vec<Place<'_>> = observed
            .nodes
            .iter()
            .map(|node| {
                let mut pods = by_node.remove(node.name()).unwrap_or_default();
                pods.sort_by_key(|pod| {
                    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
                    (pod::node(pod).is_empty(), created, pod::name(pod))
                });
                Place {
                    node: node.as_ref(),
                    fit: form.fit(node),
                    pods,
                }
            })
            .collect();
        let desired = places.iter().filter(|place| place.fit.run).count();
        let desired = i32::try_from(desired).unwrap_or(i32::MAX);
        Self {
            observed,
            revisions,
            gates,
            settings: Settings::of(&observed.set, desired),
            places,
            strays: by_node.into_values().flatten().collect(),
            desired,
            generation: generation(&observed.set),
        }
    }

    pub(super) fn set(&self) -> &'a DaemonSet {
        &self.observed.set
    }

    pub(super) fn now(&self) -> Timestamp {
        self.observed.now
    }

    /// The hash of the update revision, which pods have in a label.
    pub(super) fn hash(&self) -> &'a str {
        revision::short(&self.revisions.update.name)
    }

    pub(super) fn pre_delete(&self) -> Option<&'a LifecycleHook> {
        self.set().spec.lifecycle.as_ref()?.pre_delete.as_ref()
    }

    /// Whether a pod has the update revision, by its label.
    pub(super) fn is_labelled_new(&self, pod: &CachedPod) -> bool {
        has_revision(pod, self.hash())
    }

    /// The same, or by the number of the template.
    pub(super) fn is_new(&self, pod: &CachedPod) -> bool {
        let generation = self.generation.as_deref();
        self.is_labelled_new(pod)
            || generation.is_some_and(|number| pod::label(pod, labels::TEMPLATE_GENERATION) == Some(number))
    }

    /// Whether the pod is in service, and has been for `minReadySeconds`.
    pub(super) fn is_available(&self, pod: &CachedPod) -> bool {
        serves(pod, self.settings.min_ready_s, self.now())
    }

    /// The pods of a place that are not being deleted; none where there are two of a kind.
    pub(super) fn pair(&self, place: &Place<'a>) -> Option<Pair<'a>> {
        let mut pair = Pair { new: None, old: None };
        for pod in place.pods.iter().copied().filter(|pod| !is_terminating(pod)) {
            let kind = if self.is_new(pod) {
                &mut pair.new
            } else {
                &mut pair.old
            };
            if kind.replace(pod).is_some() {
                return None;
            }
        }
        Some(pair)
    }
}

/// The number of a set's template, as its pods have it in a label.
pub(in crate::workloads::daemonset) fn generation(set: &DaemonSet) -> Option<String> {
    let number = set.annotations().get(labels::TEMPLATE_GENERATION_OF_SET)?;
    Some(number.parse::<i64>().ok()?.to_string())
}

/// Whether the pod is being deleted.
pub(super) fn is_terminating(pod: &CachedPod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod is left to the hook before its deletion.
pub(super) fn is_preparing_delete(pod: &CachedPod) -> bool {
    &*pod.facts().state == state::PREPARING_DELETE
}

/// The pod, unless it is left to the hook before its deletion.
pub(super) fn unless_held(pod: Option<&Arc<CachedPod>>) -> Option<&Arc<CachedPod>> {
    pod.filter(|pod| !is_preparing_delete(pod))
}
