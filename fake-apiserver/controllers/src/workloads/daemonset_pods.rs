//! The pods of a daemon set: their form, and the nodes that are to have one.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, string_map};
use pod_rules::nodes::daemon;
pub(super) use pod_rules::nodes::daemon::node_of;
use shared_json::Value;

use super::pods::{from_template, owner_reference};
use crate::runtime::{number, text};

pub(super) const REVISION_LABEL: &str = "controller-revision-hash";
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";
pub(super) const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

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
    daemon::tolerate(&mut pod);
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
    daemon::pin(&mut pod, node);
    pod
}

/// Whether a node is to have a pod like [this](any_pod), and whether one that is there may stay.
pub(super) fn wanted(pod: &Value, node: &Value) -> (bool, bool) {
    let fit = daemon::fit(pod, node);
    (fit.run, fit.stay)
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
