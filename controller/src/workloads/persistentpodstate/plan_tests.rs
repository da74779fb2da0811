//! Rows: the records of pods.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1alpha1::PersistentPodState;
use crate::api::v1beta1::StatefulSet;
use crate::pods::test_pods::TestPod;

const HOST: &str = "kubernetes.io/hostname";

fn state(spec: &Value, known: &Value) -> PersistentPodState {
    let mut object = json!({
        "metadata": { "name": "s", "namespace": "default", "generation": 3 },
        "spec": { "targetRef": { "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web" },
            "requiredPersistentTopology": { "nodeTopologyKeys": [HOST] } },
        "status": { "observedGeneration": 2, "podStates": known },
    });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    serde_json::from_value(object).unwrap()
}

fn set(spec: &Value) -> StatefulSet {
    let mut object = json!({ "metadata": { "name": "web", "uid": "u" }, "spec": { "replicas": 2, "selector": {}, "template": {} } });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    serde_json::from_value(object).unwrap()
}

/// Pods by a word each: the ordinal and the node; `!` before it is a pod that is not ready.
fn pods(words: &str) -> Vec<Arc<CachedPod>> {
    let one = |word: &str| {
        let (word, ready) = word.strip_prefix('!').map_or((word, true), |word| (word, false));
        let (ordinal, node) = word.split_once('@').unwrap();
        let pod = TestPod::new(&format!("web-{ordinal}"))
            .node(node)
            .annotation("a", "1");
        let pod = if ready { pod } else { pod.not_ready() };
        Arc::new(CachedPod::from(pod.build()))
    };
    words.split_whitespace().map(one).collect()
}

fn observed(spec: &Value, known: &Value, target: Option<&Value>, words: &str) -> Observed {
    let node = |name: &str| {
        let node = shared_json::json!({ "metadata": { "name": name, "labels": { HOST: name } } });
        (name.to_owned(), Arc::new(CachedNode::from(node)))
    };
    Observed {
        state: Arc::new(state(spec, known)),
        target: target.and_then(|spec| Target::of_advanced(&set(spec))),
        pods: pods(words),
        nodes: ["n1", "n2"].map(node).into(),
    }
}

/// The records: `0@n1` a pod and its node.
fn shown(status: &PersistentPodStateStatus) -> String {
    let one = |(name, state): (&String, &PodState)| {
        assert_eq!(state.node_topology_labels.get(HOST), Some(&state.node_name));
        format!("{}@{}", name.trim_start_matches("web-"), state.node_name)
    };
    status.pod_states.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn known(words: &str) -> Value {
    let one = |word: &str| {
        let (ordinal, node) = word.split_once('@').unwrap();
        (
            format!("web-{ordinal}"),
            json!({ "nodeName": node, "nodeTopologyLabels": { HOST: node } }),
        )
    };
    Value::Object(words.split_whitespace().map(one).collect())
}

/// Fields of the spec, the records before, the set, its pods, and the records then.
#[rstest]
#[case::both_ready(json!({}), "", json!({}), "0@n1 1@n2", "0@n1 1@n2")]
#[case::not_ready_is_not_recorded(json!({}), "", json!({}), "0@n1 !1@n2", "0@n1")]
#[case::not_ready_keeps_its_record(json!({}), "1@n1", json!({}), "!1@n2", "1@n1")]
#[case::moved(json!({}), "0@n1", json!({}), "0@n2", "0@n2")]
#[case::on_an_unknown_node(json!({}), "0@n1", json!({}), "0@n9", "0@n1")]
#[case::gone_for_a_while(json!({}), "0@n1 1@n2", json!({}), "0@n1", "0@n1 1@n2")]
#[case::scaled_in_and_on_its_way(json!({}), "0@n1 1@n2", json!({ "replicas": 1 }), "0@n1 !1@n2", "0@n1 1@n2")]
#[case::scaled_in(json!({}), "0@n1 1@n2", json!({ "replicas": 1 }), "0@n1", "0@n1")]
#[case::kept_until_the_set_goes(
    json!({ "persistentPodStateRetentionPolicy": "WhenDeleted" }), "0@n1 1@n2", json!({ "replicas": 1 }), "0@n1", "0@n1 1@n2"
)]
#[case::reserved(json!({}), "0@n1 1@n1 2@n2", json!({ "reserveOrdinals": [1] }), "", "0@n1 2@n2")]
#[case::from_a_start(json!({}), "0@n1 5@n1 6@n2", json!({ "ordinals": { "start": 5 } }), "", "5@n1 6@n2")]
#[case::of_another_name(json!({}), "x@n1", json!({}), "", "")]
fn records(
    #[case] spec: Value,
    #[case] before: &str,
    #[case] set: Value,
    #[case] pods: &str,
    #[case] expect: &str,
) {
    let status = plan(&observed(&spec, &known(before), Some(&set), pods));
    assert_eq!((shown(&status).as_str(), status.observed_generation), (expect, 3));
}

#[test]
fn without_a_set_there_are_no_records() {
    let status = plan(&observed(&json!({}), &known("0@n1"), None, ""));
    assert_eq!((shown(&status).as_str(), status.observed_generation), ("", 3));
}

/// Labels and annotations that are asked for; those that are not there are left out.
#[test]
fn what_a_record_has() {
    let spec = json!({ "persistentPodAnnotations": [{ "key": "a" }, { "key": "b" }],
        "preferredPersistentTopology": [{ "weight": 1, "preference": { "nodeTopologyKeys": ["zone"] } }] });
    let status = plan(&observed(&spec, &known("0@n1"), Some(&json!({})), "0@n1"));
    let expect =
        json!({ "nodeName": "n1", "nodeTopologyLabels": { HOST: "n1" }, "annotations": { "a": "1" } });
    assert_eq!(serde_json::to_value(&status.pod_states["web-0"]).unwrap(), expect);
}
