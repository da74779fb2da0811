//! Rows: the life of the object of a node.

use std::sync::Arc;

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedNode, CachedPod};

/// A node by words: `ready`, `virtual`, `deleting`.
fn node(words: &str) -> Arc<CachedNode> {
    let has = |word: &str| words.split(' ').any(|known| known == word);
    let status = if has("ready") { "True" } else { "False" };
    let labels = if has("virtual") {
        shared_json::json!({ "type": "virtual-kubelet" })
    } else {
        shared_json::json!({})
    };
    let mut node = shared_json::json!({ "metadata": { "name": "n1", "labels": labels },
        "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    if has("deleting") {
        node["metadata"]["deletionTimestamp"] = shared_json::json!("1970-01-01T00:00:00Z");
    }
    Arc::new(CachedNode::from(node))
}

/// The object of the node, with entries of pods by name.
fn probes(pods: &[&str]) -> Arc<NodePodProbe> {
    let entry =
        |name: &&str| json!({ "name": name, "namespace": "default", "uid": format!("uid-{name}"), "IP": "" });
    let entries: Vec<_> = pods.iter().map(entry).collect();
    let object = json!({ "metadata": { "name": "n1" }, "spec": { "podProbes": entries } });
    Arc::new(serde_json::from_value(object).unwrap())
}

#[rstest]
#[case::ready(Some("ready"), false, Plan::Create)]
#[case::not_ready(Some(""), false, Plan::Nothing)]
#[case::virtual_node(Some("ready virtual"), false, Plan::Nothing)]
#[case::goes_without_an_object(Some("ready deleting"), false, Plan::Nothing)]
#[case::goes(Some("ready deleting"), true, Plan::Delete)]
#[case::gone(None, true, Plan::Delete)]
#[case::nothing_at_all(None, false, Plan::Nothing)]
#[case::not_ready_any_more(Some(""), true, Plan::Work(None, Vec::new()))]
fn nodes(#[case] words: Option<&str>, #[case] has_object: bool, #[case] expect: Plan) {
    let observed = Observed {
        node: words.map(node),
        probes: has_object.then(|| probes(&[])),
        ..Observed::default()
    };
    assert_eq!(plan(&observed), expect);
}

/// Pods that are there: `a` is active, `done` has ended, `other` is another one of the name.
#[rstest]
#[case::active(&["a"], None)]
#[case::gone(&["a", "z"], Some(vec!["a"]))]
#[case::ended(&["done", "a"], Some(vec!["a"]))]
#[case::another_of_the_name(&["other"], Some(vec![]))]
fn pods(#[case] entries: &[&str], #[case] expect: Option<Vec<&str>>) {
    let pods = [
        TestPod::new("a"),
        TestPod::new("done").phase("Succeeded"),
        TestPod::new("other").set("/metadata/uid", json!("new")),
    ];
    let keyed = |pod: TestPod| {
        (
            ObjectKey::new("default", pod.name()),
            Arc::new(CachedPod::from(pod.build())),
        )
    };
    let observed = Observed {
        node: Some(node("ready")),
        probes: Some(probes(entries)),
        pods: pods.map(keyed).into(),
        ..Observed::default()
    };
    let Plan::Work(spec, marks) = plan(&observed) else {
        panic!()
    };
    let names = spec.as_ref().map(|spec| {
        let names = spec.pod_probes.iter().map(|entry| entry.name.as_str());
        names.collect::<Vec<_>>()
    });
    assert_eq!((names, marks), (expect, Vec::new()));
}

/// The results of a pod that is probed no longer do not mark it.
#[rstest]
#[case("a", 1)]
#[case("z", 0)]
fn results(#[case] pod: &str, #[case] expect: usize) {
    let marker = json!({ "metadata": { "name": "m", "namespace": "default" }, "spec": { "selector": {},
        "probes": [{ "name": "p", "containerName": "main", "probe": {}, "podConditionType": "c.io/x" }] } });
    let mut object = NodePodProbe::clone(&probes(&["a"]));
    let results = json!({ "podProbeStatuses": [{ "name": pod, "namespace": "default", "uid": format!("uid-{pod}"),
        "probeStates": [{ "name": "m#p", "state": "Succeeded" }] }] });
    object.status = serde_json::from_value(results).unwrap();
    let pods = ["a", "z"].map(|name| {
        (
            ObjectKey::new("default", name),
            Arc::new(CachedPod::from(TestPod::new(name).build())),
        )
    });
    let observed = Observed {
        node: Some(node("ready")),
        probes: Some(Arc::new(object)),
        pods: pods.into(),
        markers: [(
            ObjectKey::new("default", "m"),
            Arc::new(serde_json::from_value(marker).unwrap()),
        )]
        .into(),
    };
    let Plan::Work(None, marks) = plan(&observed) else {
        panic!()
    };
    assert_eq!(marks.len(), expect);
}
