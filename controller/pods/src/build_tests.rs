//! Pods that are made for a node.

use kruise_api::v1beta1::DaemonSet;
use rstest::rstest;

use super::*;

fn owner() -> Owner {
    let set = json!({ "metadata": { "name": "agent", "namespace": "default", "uid": "u" },
        "spec": { "selector": {}, "template": {} } });
    Owner::of(&serde_json::from_value::<DaemonSet>(set).unwrap())
}

fn made(template: Value, identity: Identity<'_>) -> Value {
    let (owner, labels) = (owner(), BTreeMap::new());
    let revision = Revision {
        name: "agent-78f5b9ffbf".to_owned(),
        template,
        claims: None,
    };
    let blueprint = Blueprint {
        owner: &owner,
        claim_templates: &[],
        claim_labels: &labels,
        identity,
    };
    let new = NewPod {
        id: "4wz2z".to_owned(),
        revision: &revision,
        node: "node1",
    };
    pod(&blueprint, &new, Timestamp::UNIX_EPOCH)
}

const PLAIN: Identity<'_> = Identity::Node {
    by_scheduler: true,
    gate: false,
    generation: None,
};

/// As OpenKruise 1.9.0 makes them (recording `ads-create-standard-update`).
#[test]
fn a_pod_of_a_node() {
    let template = json!({ "metadata": { "creationTimestamp": null, "labels": { "app": "x" } },
        "spec": { "containers": [{ "name": "main", "image": "v1" }] } });
    let tolerations = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    let tolerations = tolerations.map(|(key, effect)| {
        json!({ "key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect })
    });
    let expect = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "agent-4wz2z", "generateName": "agent-", "namespace": "default", "annotations": {},
            "labels": { "app": "x", "controller-revision-hash": "78f5b9ffbf" },
            "ownerReferences": [{ "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "name": "agent", "uid": "u",
                "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "containers": [{ "name": "main", "image": "v1" }],
            "tolerations": tolerations,
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node1"] }] },
            ] } } },
        },
    });
    assert_eq!(made(template, PLAIN), expect);
}

/// The template's spec, and the value at a pointer of the pod.
#[rstest]
#[case::every_term_gives_way(
    json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "a", "operator": "Exists" }] }, { "matchExpressions": [{ "key": "b", "operator": "Exists" }] }] },
        "preferredDuringSchedulingIgnoredDuringExecution": [] } } }),
    PLAIN,
    "/spec/affinity/nodeAffinity",
    json!({ "preferredDuringSchedulingIgnoredDuringExecution": [], "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node1"] }] }] } })
)]
#[case::bound(
    json!({}), Identity::Node { by_scheduler: false, gate: false, generation: None }, "/spec/nodeName", json!("node1")
)]
#[case::bound_by_no_scheduler(
    json!({ "schedulerName": "other" }), Identity::Node { by_scheduler: false, gate: false, generation: None },
    "/spec/schedulerName", json!("kubernetes.io/daemonset-controller")
)]
#[case::in_place(
    json!({}), Identity::Node { by_scheduler: true, gate: true, generation: None },
    "/spec/readinessGates", json!([{ "conditionType": "InPlaceUpdateReady" }])
)]
#[case::number_of_the_template(
    json!({}), Identity::Node { by_scheduler: true, gate: false, generation: Some("3") },
    "/metadata/labels", json!({ "controller-revision-hash": "78f5b9ffbf", "pod-template-generation": "3" })
)]
#[case::once_without_a_revision(
    json!({ "schedulerName": "own" }), Identity::Once { by_scheduler: true, labels: &[("job", "agent")] },
    "/metadata/labels", json!({ "job": "agent" })
)]
#[case::once_by_its_affinity(
    json!({ "nodeSelector": { "a": "b" } }), Identity::Once { by_scheduler: true, labels: &[] }, "/spec",
    json!({ "nodeSelector": { "a": "b" }, "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node1"] }] }] } } } })
)]
#[case::once_and_bound(
    json!({ "schedulerName": "own" }), Identity::Once { by_scheduler: false, labels: &[] }, "/spec",
    json!({ "schedulerName": "own", "nodeName": "node1" })
)]
fn what_a_pod_of_a_node_has(
    #[case] spec: Value,
    #[case] identity: Identity<'_>,
    #[case] pointer: &str,
    #[case] expect: Value,
) {
    let pod = made(json!({ "spec": spec }), identity);
    assert_eq!(pod.pointer(pointer), Some(&expect));
}
