//! Nodes that take no pods, and pods that name their node.

use shared_json::Value;

use super::super::cluster::{NodeInfo, list, text};
use super::taints::tolerates;
use super::{Cycle, Refusal};
use crate::meta::at;

/// Cordoned nodes, but for pods that tolerate that.
pub(super) fn unschedulable(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let cordoned = at(&node.object, "spec.unschedulable").and_then(Value::as_bool) == Some(true);
    let taint = shared_json::json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    let tolerated = list(&cycle.pod.object, "spec.tolerations")
        .iter()
        .any(|toleration| tolerates(toleration, &taint));
    (cordoned && !tolerated).then(|| Refusal::hopeless("node(s) were unschedulable"))
}

/// The node that the pod names.
pub(super) fn name(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let wanted = text(&cycle.pod.object, "spec.nodeName");
    (!wanted.is_empty() && wanted != node.name())
        .then(|| Refusal::hopeless("node(s) didn't match the requested node name"))
}
