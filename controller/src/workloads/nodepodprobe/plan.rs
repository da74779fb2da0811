//! The rules: the object of a node, and the marks of its pods, as a pure function.

use kube::Resource as _;

use super::marks::{Marks, marks};
use super::observe::Observed;
use crate::api::v1alpha1::{NodePodProbe, NodePodProbeSpec, PodProbe};
use crate::kit::ObjectKey;
use crate::pods::pod::{self, Pod};

/// The work of one pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// The node has no object, and gets none for now.
    Nothing,
    /// The node gets an object.
    Create,
    /// The node is gone: its object goes.
    Delete,
    /// The probes, if some go, and the marks of pods.
    Work(Option<NodePodProbeSpec>, Vec<Marks>),
}

/// The work of one pass over a node.
pub(super) fn plan(observed: &Observed) -> Plan {
    let node = observed.node.as_ref();
    let node = node.filter(|node| node.meta().deletion_timestamp.is_none());
    let (Some(node), Some(probes)) = (node, &observed.probes) else {
        return match (node, &observed.probes) {
            (Some(node), None) if node.is_ready() && !node.is_virtual() => Plan::Create,
            (None, Some(_)) => Plan::Delete,
            _ => Plan::Nothing,
        };
    };
    debug_assert_eq!(probes.metadata.name.as_deref(), Some(node.name()));
    let kept: Vec<PodProbe> = probes
        .spec
        .pod_probes
        .iter()
        .filter(|entry| probed(observed, entry).is_some())
        .cloned()
        .collect();
    let changes = kept.len() != probes.spec.pod_probes.len();
    let spec = NodePodProbeSpec { pod_probes: kept };
    let marks = all_marks(observed, probes, &spec);
    Plan::Work(changes.then_some(spec), marks)
}

/// The pod of an entry, if it is there and active.
fn probed<'o>(observed: &'o Observed, entry: &PodProbe) -> Option<&'o Pod> {
    let pod = observed
        .pods
        .get(&ObjectKey::new(&entry.namespace, &entry.name))?;
    (pod.facts().active && pod::uid(pod) == entry.uid).then_some(&***pod)
}

/// The marks of the pods that are still probed.
fn all_marks(observed: &Observed, probes: &NodePodProbe, spec: &NodePodProbeSpec) -> Vec<Marks> {
    let results = probes.status.iter().flat_map(|status| &status.pod_probe_statuses);
    let marked = results.filter_map(|result| {
        let entry = spec.pod_probes.iter().find(|entry| entry.uid == result.uid)?;
        marks(probed(observed, entry)?, result, &observed.markers)
    });
    marked.collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
