//! Nodes that take no pods, and pods that name their node.

use machinery::placement::tolerates;

use super::super::cluster::{NodeInfo, list, text};
use super::{Cycle, Refusal};

/// Cordoned nodes, but for pods that tolerate that.
pub(super) fn unschedulable(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    if !node.cordoned {
        return None;
    }
    let taint = shared_json::json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    let tolerated = list(&cycle.pod.object, "spec.tolerations")
        .iter()
        .any(|toleration| tolerates(toleration, &taint));
    (!tolerated).then(|| Refusal::hopeless("node(s) were unschedulable"))
}

pub(super) fn names_node(cycle: &Cycle<'_>) -> bool {
    !text(&cycle.pod.object, "spec.nodeName").is_empty()
}

/// The node that the pod names.
pub(super) fn name(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    (text(&cycle.pod.object, "spec.nodeName") != node.name())
        .then(|| Refusal::hopeless("node(s) didn't match the requested node name"))
}
