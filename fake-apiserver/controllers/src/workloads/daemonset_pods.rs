//! The pods of a daemon set: their form, and the nodes that are to have one.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, string_map};
use machinery::placement::{node_matches, tolerates_all};
use shared_json::{Value, json};

use super::pods::{from_template, owner_reference};
use crate::runtime::{list, number, text};

pub(super) const REVISION_LABEL: &str = "controller-revision-hash";
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";
pub(super) const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// The tolerations of every daemon's pod: key and effect.
const TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Of which revision a pod is, or which one a revision is.
pub(super) fn hash_of(object: &Value) -> &str {
    string_map(object, "labels")
        .get(REVISION_LABEL)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number of the template that pods were labelled with before there were revisions.
pub(super) fn generation(set: &Value) -> Option<String> {
    string_map(set, "annotations")
        .get(GENERATION_ANNOTATION)
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<i64>().ok())
        .map(|number| number.to_string())
}

/// The common form of all pods of a set.
pub(super) fn any_pod(set: &Value) -> Value {
    let mut pod = from_template(
        &set["spec"]["template"],
        owner_reference("apps/v1", "DaemonSet", set),
    );
    let mut tolerations = list(&pod, "spec.tolerations").to_vec();
    let network = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let more = network.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    for (key, effect) in TOLERATIONS.into_iter().chain(more) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        let same = |known: &Value| {
            ["key", "effect", "operator", "value"]
                .iter()
                .all(|field| text(known, field) == text(&toleration, field))
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
    pod
}

/// The pod for a node.
pub(super) fn new_pod(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = any_pod(set);
    pod["metadata"]["generateName"] = Value::from(format!("{}-", set.name()));
    pod["metadata"]["labels"][REVISION_LABEL] = Value::from(hash);
    if let Some(generation) = generation(set) {
        pod["metadata"]["labels"][GENERATION_LABEL] = Value::from(generation);
    }
    // The scheduler binds it, but to that node only.
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let terms = json!([{"matchFields": [field]}]);
    if !pod.pointer("/spec/affinity").is_some_and(Value::is_object) {
        pod["spec"]["affinity"] = json!({});
    }
    match pod.pointer_mut(required) {
        Some(selector) => selector["nodeSelectorTerms"] = terms,
        None => {
            pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": terms});
        }
    }
    pod
}

/// The node that a pod is on, or is meant for.
pub(super) fn node_of(pod: &Value) -> &str {
    let bound = text(pod, "spec.nodeName");
    if !bound.is_empty() {
        return bound;
    }
    let terms = pod
        .pointer(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        )
        .and_then(Value::as_array);
    terms
        .into_iter()
        .flatten()
        .flat_map(|term| list(term, "matchFields"))
        .find(|field| text(field, "key") == "metadata.name")
        .and_then(|field| field.pointer("/values/0"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a node is to have a pod like [this](any_pod), and whether one that is there may stay.
pub(super) fn wanted(pod: &Value, node: &Value) -> (bool, bool) {
    let named = text(pod, "spec.nodeName");
    if !(named.is_empty() || named == node.name()) || !node_matches(pod, node) {
        return (false, false);
    }
    let taints = list(node, "spec.taints");
    let run = tolerates_all(pod, taints, &["NoSchedule", "NoExecute"]);
    let stay = tolerates_all(pod, taints, &["NoExecute"]);
    (run, stay)
}

/// Whether a node that has changed concerns a set with these pods. Pods that are only meant for the node do not count.
pub(super) fn concerns(set: &Value, node: &Value, pods: &[Arc<Value>]) -> bool {
    let (run, stay) = wanted(&any_pod(set), node);
    let has_pod = pods.iter().any(|pod| text(pod, "spec.nodeName") == node.name());
    if has_pod {
        !stay || number(set, "status.numberMisscheduled", 0) > 0
    } else {
        run
    }
}
