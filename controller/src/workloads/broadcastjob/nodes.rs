//! Which nodes fit a job and its pods, and which changes of a node concern a job.

use kube::Resource as _;
use pod_rules::nodes::empty;
use shared_json::{Value, json};

use crate::api::v1beta1::BroadcastJob;
use crate::pods::{CachedNode, CachedPod};

/// The pods that a job makes, as far as nodes look at them.
pub(super) struct Form(Value);

impl Form {
    /// That of `job`.
    pub(super) fn of(job: &BroadcastJob) -> Self {
        let spec = job.spec.template.get("spec").cloned().unwrap_or_default();
        let mut pod = json!({ "spec": Value::from(spec) });
        // A pod is made for each node, whatever node the template names.
        if let Some(spec) = pod.pointer_mut("/spec").and_then(Value::as_object_mut) {
            spec.remove("nodeName");
        }
        Self(pod)
    }

    /// Whether a node fits.
    pub(super) fn fits(&self, node: &CachedNode) -> bool {
        empty::fits(&self.0, node.shape())
    }
}

/// Whether a pod still fits the node that it is on or on its way to. The template may be another one by now.
pub(super) fn keeps(pod: &CachedPod, node: &CachedNode) -> bool {
    let spec = &pod.spec;
    let amounts = |container: &crate::pods::pod::Container| {
        let requests = container
            .resources
            .iter()
            .flat_map(|resources| &*resources.requests.0);
        let requests: shared_json::Map = requests
            .map(|(name, amount)| (name.to_string(), Value::from(amount.to_string())))
            .collect();
        json!({ "resources": { "requests": Value::from(requests) } })
    };
    let containers: Vec<Value> = spec.containers.iter().map(amounts).collect();
    let mut affinity = json!({});
    if !spec.required.terms.is_null() {
        affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": spec.required.terms.clone() } } });
    }
    let shape = json!({ "spec": {
        "nodeName": spec.node_name.to_string(),
        "nodeSelector": spec.node_selector.clone(),
        "tolerations": spec.all_tolerations(),
        "affinity": affinity,
        "containers": containers,
    } });
    empty::fits(&shape, node.shape())
}

/// Whether a job has to be looked at because a node came, has changed or is gone.
pub(super) fn concerns(job: &BroadcastJob, before: Option<&CachedNode>, now: Option<&CachedNode>) -> bool {
    let form = Form::of(job);
    let fits = |node: Option<&CachedNode>| node.is_some_and(|node| form.fits(node));
    fits(before) != fits(now)
}

/// Whether two versions of a node are alike in all that a job asks of one.
pub(super) fn is_the_same(one: &CachedNode, other: &CachedNode) -> bool {
    one.meta().uid == other.meta().uid && one.shape() == other.shape()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    /// A node with a label `sel` and a taint, each `-` where there is none, and so many processors.
    fn node(label: &str, effect: &str, cpu: &str) -> Arc<CachedNode> {
        let labels = match label {
            "-" => json!({}),
            label => json!({ "sel": label }),
        };
        let taints = match effect {
            "-" => json!([]),
            effect => json!([{ "key": "k", "effect": effect }]),
        };
        let node = json!({ "metadata": { "name": "n", "labels": labels }, "spec": { "taints": taints },
            "status": { "allocatable": { "cpu": cpu, "pods": "110" } } });
        Arc::new(CachedNode::from(node))
    }

    fn job(spec: &serde_json::Value) -> BroadcastJob {
        let job =
            serde_json::json!({ "metadata": { "name": "j" }, "spec": { "template": { "spec": spec } } });
        serde_json::from_value(job).unwrap()
    }

    /// The template's spec, the node before and now.
    #[rstest]
    #[case::new(serde_json::json!({}), None, ("-", "-", "1"), true)]
    #[case::named_otherwise(serde_json::json!({ "nodeName": "m" }), None, ("-", "-", "1"), true)]
    #[case::new_and_not_wanted(serde_json::json!({ "nodeSelector": { "sel": "a" } }), None, ("-", "-", "1"), false)]
    #[case::new_and_tainted(serde_json::json!({}), None, ("-", "NoSchedule", "1"), false)]
    #[case::alike(serde_json::json!({}), Some(("a", "-", "1")), ("b", "-", "1"), false)]
    #[case::wanted_now(serde_json::json!({ "nodeSelector": { "sel": "a" } }), Some(("b", "-", "1")), ("a", "-", "1"), true)]
    #[case::tainted(serde_json::json!({}), Some(("-", "-", "1")), ("-", "NoExecute", "1"), true)]
    #[case::not_much(serde_json::json!({}), Some(("-", "-", "1")), ("-", "PreferNoSchedule", "1"), false)]
    #[case::grown(
        serde_json::json!({ "containers": [{ "resources": { "requests": { "cpu": "2" } } }] }),
        Some(("-", "-", "1")), ("-", "-", "2"), true
    )]
    fn changes_that_concern_a_job(
        #[case] spec: serde_json::Value,
        #[case] before: Option<(&str, &str, &str)>,
        #[case] now: (&str, &str, &str),
        #[case] expect: bool,
    ) {
        let before = before.map(|(label, effect, cpu)| node(label, effect, cpu));
        let now = node(now.0, now.1, now.2);
        assert_eq!(concerns(&job(&spec), before.as_deref(), Some(&now)), expect);
    }

    #[rstest]
    #[case::it_counted(serde_json::json!({}), true)]
    #[case::it_did_not(serde_json::json!({ "nodeSelector": { "sel": "a" } }), false)]
    fn nodes_that_are_missed(#[case] spec: serde_json::Value, #[case] expect: bool) {
        assert_eq!(concerns(&job(&spec), Some(&node("-", "-", "1")), None), expect);
    }

    /// The spec of a pod on the node `n`, which has the label `sel=a` and one processor.
    #[rstest]
    #[case::plain(serde_json::json!({}), true)]
    #[case::selected(serde_json::json!({ "nodeSelector": { "sel": "a" } }), true)]
    #[case::not_selected_any_more(serde_json::json!({ "nodeSelector": { "sel": "b" } }), false)]
    #[case::required(serde_json::json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "sel", "operator": "In", "values": ["b"] }] }] } } } }), false)]
    #[case::pinned(serde_json::json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] }] } } } }), true)]
    #[case::too_large(serde_json::json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": "2" } } }] }), false)]
    fn pods_that_fit_their_node(#[case] spec: serde_json::Value, #[case] expect: bool) {
        let mut pod = serde_json::json!({ "metadata": { "name": "p" }, "spec": spec });
        pod["spec"]["nodeName"] = "n".into();
        let pod = CachedPod::from(serde_json::from_value::<crate::pods::pod::Pod>(pod).unwrap());
        assert_eq!(keeps(&pod, &node("a", "-", "1")), expect);
    }
}
