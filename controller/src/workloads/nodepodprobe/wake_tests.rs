use std::sync::Arc;

use futures::FutureExt as _;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::pods::test_pods::TestPod;

/// The probes of the pod `p` on the node `n1`.
fn probes() -> Informer<NodePodProbe> {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodePodProbe", "metadata": { "name": "n1" },
        "spec": { "podProbes": [{ "name": "p", "namespace": "default", "uid": "uid-p", "IP": "1.1.1.1", "probes": [] }] },
    });
    let probes = Informer::new();
    probes.learn(
        &ObjectKey::new("", "n1"),
        Some(serde_json::from_value(object).unwrap()),
    );
    probes
}

fn is_woken(wake: impl FnOnce(&WorkQueue<ObjectKey>)) -> bool {
    let queue = WorkQueue::new();
    wake(&queue);
    queue.next().now_or_never().flatten().is_some()
}

fn cached(pod: TestPod) -> Arc<CachedPod> {
    Arc::new(CachedPod::from(pod.build()))
}

fn going() -> TestPod {
    TestPod::new("p").set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z"))
}

/// A pod turns into another.
#[rstest]
#[case::going(TestPod::new("p"), going(), true)]
#[case::over(TestPod::new("p"), TestPod::new("p").phase("Failed"), true)]
#[case::going_still(going(), going().label("a", "b"), false)]
#[case::ready(TestPod::new("p").not_ready(), TestPod::new("p"), false)]
#[case::not_probed(TestPod::new("q"), TestPod::new("q").phase("Failed"), false)]
#[case::on_another_node(TestPod::new("p").node("n2"), TestPod::new("p").node("n2").phase("Failed"), false)]
fn pods_that_change(#[case] old: TestPod, #[case] new: TestPod, #[case] want: bool) {
    let (old, new) = (cached(old), cached(new));
    let change = Change::Updated(&old, &new);
    assert_eq!(is_woken(|queue| pod_changed(&probes(), &change, queue)), want);
}

#[rstest]
#[case::probed(TestPod::new("p"), true)]
#[case::not_probed(TestPod::new("q"), false)]
#[case::another_of_that_name(TestPod::new("p").set("/metadata/uid", json!("another")), false)]
fn pods_that_are_gone(#[case] pod: TestPod, #[case] want: bool) {
    let pod = cached(pod);
    let change = Change::Deleted(&pod);
    assert_eq!(is_woken(|queue| pod_changed(&probes(), &change, queue)), want);
    let change = Change::Added(&pod);
    assert!(!is_woken(|queue| pod_changed(&probes(), &change, queue)));
}

/// A node, which is there, going or gone.
#[rstest]
#[case::without_an_object("n2", "there", true)]
#[case::with_an_object("n1", "there", false)]
#[case::going("n1", "going", true)]
#[case::gone("n1", "gone", true)]
#[case::gone_without_an_object("n2", "gone", false)]
fn nodes(#[case] name: &str, #[case] state: &str, #[case] want: bool) {
    let time = (state == "going").then_some("1970-01-01T00:00:00Z");
    let node = shared_json::json!({ "metadata": { "name": name, "deletionTimestamp": time } });
    let node = Arc::new(CachedNode::from(node));
    let change = match state {
        "gone" => Change::Deleted(&node),
        _ => Change::Updated(&node, &node),
    };
    assert_eq!(is_woken(|queue| node_changed(&probes(), &change, queue)), want);
}
