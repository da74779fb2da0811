//! The pods of a DaemonSet: each is made for one node, and tolerates a node's faults.
//!
//! The built-in DaemonSets and OpenKruise's have the same rules.

use shared_json::{Array, Value, json};

use super::affinity::POINTER;
use super::{node_matches, tolerates_all};
use crate::fields::{Fields as _, path};

/// The tolerations of every daemon's pod: key and effect.
const TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The required part of a pod's affinity to nodes.
const IN_AFFINITY: &str = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";

/// Whether a node is to have a pod of a DaemonSet, and whether one that is there may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Whether it is to have one.
    pub run: bool,
    /// Whether one that is there stays.
    pub stay: bool,
}

/// Adds the tolerations of every daemon's pod to a pod.
///
/// ```
/// use pod_rules::nodes::daemon;
/// use shared_json::json;
///
/// let mut pod = json!({"spec": {}});
/// daemon::tolerate(&mut pod);
/// assert_eq!(pod["spec"]["tolerations"].as_array().map(|list| list.len()), Some(6));
/// ```
pub fn tolerate(pod: &mut Value) {
    let spec = pod.map("spec");
    let mut tolerations = spec.list("tolerations").to_vec();
    let network = spec
        .is_true("hostNetwork")
        .then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    for (key, effect) in TOLERATIONS.into_iter().chain(network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        let same = |known: &Value| {
            ["key", "effect", "operator", "value"]
                .iter()
                .all(|field| known.text(field) == toleration.text(field))
        };
        if tolerations.contains(&toleration) {
            continue;
        }
        if tolerations.iter().any(same) {
            // One for a time becomes one for good.
            for known in tolerations.iter_mut().filter(|known| same(known)) {
                *known = toleration.clone();
            }
        } else {
            tolerations.push(toleration);
        }
    }
    pod["spec"]["tolerations"] = Value::from(tolerations);
}

/// Lets a pod onto one node only. The scheduler binds it.
pub fn pin(pod: &mut Value, node: &str) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!([{"matchFields": [field]}]);
    if !pod.pointer("/spec/affinity").is_some_and(Value::is_object) {
        pod["spec"]["affinity"] = json!({});
    }
    match pod.pointer_mut(POINTER) {
        Some(selector) => selector["nodeSelectorTerms"] = terms,
        None => {
            pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": terms});
        }
    }
}

/// The node that a pod is on, or is meant for; empty if neither is known.
pub fn node_of(pod: &Value) -> &str {
    let bound = pod.map("spec").text("nodeName");
    if !bound.is_empty() {
        return bound;
    }
    path(pod, "/spec/affinity").map_or("", node_named_by)
}

/// The node that a pod's affinity names; empty if it names none.
pub fn node_named_by(affinity: &Value) -> &str {
    let terms = path(affinity, IN_AFFINITY).map_or(&[][..], |required| required.list("nodeSelectorTerms"));
    terms
        .iter()
        .flat_map(|term| term.list("matchFields"))
        .find(|field| field.text("key") == "metadata.name")
        .and_then(|field| field.pointer("/values/0"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// How a node fits a pod that has its [tolerations](tolerate) and is not [pinned](pin).
pub fn fit(pod: &Value, node: &Value) -> Fit {
    let named = pod.map("spec").text("nodeName");
    if !(named.is_empty() || named == node.map("metadata").text("name")) || !node_matches(pod, node) {
        return Fit {
            run: false,
            stay: false,
        };
    }
    let taints = path(node, "/spec/taints")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    Fit {
        run: tolerates_all(pod, taints, &["NoSchedule", "NoExecute"]),
        stay: tolerates_all(pod, taints, &["NoExecute"]),
    }
}
