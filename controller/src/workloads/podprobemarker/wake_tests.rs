use std::sync::Arc;

use futures::FutureExt as _;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::pods::test_pods::TestPod;

/// The marker `m` of pods with `app=x`, whose probe sets the condition `up`, and the marker `other` of pods with `app=y`.
fn markers() -> Informer<PodProbeMarker> {
    let markers = Informer::new();
    for (name, app) in [("m", "x"), ("other", "y")] {
        let marker = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": app } },
                "probes": [{ "name": "p", "containerName": "main", "probe": {}, "podConditionType": "up" }] },
        });
        markers.learn(
            &ObjectKey::new("default", name),
            Some(serde_json::from_value(marker).unwrap()),
        );
    }
    markers
}

/// The names of the markers that a change of a pod wakes; its node is virtual or not.
fn woken(change: &Change<'_, CachedPod>, is_virtual: bool, serverless: bool) -> Vec<String> {
    let nodes = Informer::new();
    let kind = if is_virtual { "virtual-kubelet" } else { "machine" };
    let node = shared_json::json!({ "metadata": { "name": "n1", "labels": { "type": kind } } });
    nodes.learn(&ObjectKey::new("", "n1"), Some(CachedNode::from(node)));
    let waker = Waker {
        markers: markers(),
        nodes,
        serverless,
    };
    let queue = WorkQueue::new();
    waker.pod_changed(change, &queue);
    std::iter::from_fn(|| queue.next().now_or_never().flatten())
        .map(|key| key.name)
        .collect()
}

/// A pod that can be probed.
fn probed() -> TestPod {
    TestPod::new("p").condition("Initialized", "True")
}

fn at(ip: &str) -> TestPod {
    probed().set("/status/podIP", json!(ip))
}

fn going(pod: TestPod) -> TestPod {
    pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z"))
}

fn up(status: &str) -> TestPod {
    probed().condition("up", status)
}

const NONE: &[&str] = &[];

#[rstest]
#[case::initialized(Some(TestPod::new("p")), probed(), &["m"])]
#[case::not_initialized(Some(TestPod::new("p")), TestPod::new("p").label("a", "b"), NONE)]
#[case::there_from_the_start(None, probed(), &["m"])]
#[case::there_and_not_initialized(None, TestPod::new("p"), NONE)]
#[case::another_address(Some(at("1.1.1.1")), at("1.1.1.2"), &["m"])]
#[case::the_same(Some(at("1.1.1.1")), at("1.1.1.1"), NONE)]
#[case::ready(Some(probed().not_ready()), probed(), NONE)]
#[case::going(Some(probed()), going(probed()), &["m"])]
#[case::over(Some(probed()), probed().phase("Succeeded"), &["m"])]
#[case::another_marker(Some(probed()), probed().label("app", "y"), &["m", "other"])]
#[case::of_no_marker(Some(TestPod::new("p").label("app", "z")), probed().label("app", "z"), NONE)]
#[case::by_name(
    Some(TestPod::new("p").annotation(MARKERS, "other,gone")), probed().annotation(MARKERS, "other,gone"), &["other"])]
#[case::of_another_namespace(
    Some(TestPod::new("p").set("/metadata/namespace", json!("elsewhere"))),
    probed().set("/metadata/namespace", json!("elsewhere")), NONE)]
fn pods_wake_their_markers(#[case] old: Option<TestPod>, #[case] new: TestPod, #[case] want: &[&str]) {
    let cached = |pod: TestPod| Arc::new(CachedPod::from(pod.build()));
    let (old, new) = (old.map(cached), cached(new));
    let change = match &old {
        Some(old) => Change::Updated(old, &new),
        None => Change::Added(&new),
    };
    assert_eq!(woken(&change, false, false), want);
}

/// On a virtual node with the gate, the pod's own conditions count, not its address.
#[rstest]
#[case::turned(up("False"), up("True"), true, &["m"])]
#[case::new(probed(), up("True"), true, &["m"])]
#[case::as_before(up("True"), up("True"), true, NONE)]
#[case::another_condition(up("True"), up("True").condition("down", "True"), true, NONE)]
#[case::another_address(at("1.1.1.1"), at("1.1.1.2"), true, NONE)]
#[case::without_the_gate(up("False"), up("True"), false, NONE)]
fn pods_of_virtual_nodes(
    #[case] old: TestPod,
    #[case] new: TestPod,
    #[case] serverless: bool,
    #[case] want: &[&str],
) {
    let [old, new] = [old, new].map(|pod| Arc::new(CachedPod::from(pod.build())));
    assert_eq!(woken(&Change::Updated(&old, &new), true, serverless), want);
}

#[rstest]
#[case::probed(probed(), &["m"])]
#[case::not_probed(TestPod::new("p"), NONE)]
fn pods_that_are_gone(#[case] pod: TestPod, #[case] want: &[&str]) {
    let pod = Arc::new(CachedPod::from(pod.build()));
    assert_eq!(woken(&Change::Deleted(&pod), false, false), want);
}
