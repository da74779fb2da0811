use std::sync::Arc;

use futures::FutureExt as _;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1beta1::StatefulSet;
use crate::pods::test_pods::TestPod;

/// The states `s` of the Advanced StatefulSet `w`, and `t` of another one.
fn states() -> Informer<PersistentPodState> {
    let states = Informer::new();
    for (name, workload) in [("s", "w"), ("t", "other")] {
        let target =
            json!({ "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": workload });
        let state = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PersistentPodState",
            "metadata": { "name": name, "namespace": "default" }, "spec": { "targetRef": target },
        });
        states.learn(
            &ObjectKey::new("default", name),
            Some(serde_json::from_value(state).unwrap()),
        );
    }
    states
}

/// The keys that are queued: a state by its name, a workload as `workload/<name>`.
fn woken(wake: impl FnOnce(&WorkQueue<Key>)) -> Vec<String> {
    let queue = WorkQueue::new();
    wake(&queue);
    let keys = std::iter::from_fn(|| queue.next().now_or_never().flatten());
    keys.map(|key| match key {
        Key::State(key) => key.name,
        Key::Workload(_, workload) => format!("workload/{}", workload.name),
    })
    .collect()
}

/// A pod of the set `w`.
fn of_set() -> TestPod {
    TestPod::new("w-0").set(
        "/metadata/ownerReferences",
        json!([{ "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "w", "uid": "u", "controller": true }]),
    )
}

/// A pod that names its state.
fn named() -> TestPod {
    TestPod::new("x-0").annotation(INJECTED, "t")
}

fn going(pod: TestPod) -> TestPod {
    pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z"))
}

#[rstest]
#[case::ready(Some(of_set().not_ready()), of_set(), &["s"])]
#[case::going(Some(of_set()), going(of_set()), &["s"])]
#[case::labelled(Some(of_set()), of_set().label("a", "b"), &[])]
#[case::there_from_the_start(None, of_set(), &["s"])]
#[case::by_name(Some(named().not_ready()), named(), &["t"])]
#[case::of_no_set(Some(TestPod::new("p").not_ready()), TestPod::new("p"), &[])]
#[case::of_another_namespace(
    Some(of_set().not_ready().set("/metadata/namespace", json!("elsewhere"))),
    of_set().set("/metadata/namespace", json!("elsewhere")), &[])]
fn pods(#[case] old: Option<TestPod>, #[case] new: TestPod, #[case] want: &[&str]) {
    let cached = |pod: TestPod| Arc::new(CachedPod::from(pod.build()));
    let (old, new) = (old.map(cached), cached(new));
    let change = match &old {
        Some(old) => Change::Updated(old, &new),
        None => Change::Added(&new),
    };
    assert_eq!(woken(|queue| pod_changed(&states(), &change, queue)), want);
}

#[test]
fn pods_that_are_gone() {
    let pod = Arc::new(CachedPod::from(of_set().build()));
    let change = Change::Deleted(&pod);
    assert_eq!(woken(|queue| pod_changed(&states(), &change, queue)), ["s"]);
}

/// The set `w` of this generation, with an annotation, if there is one.
fn set(generation: i64, annotation: Option<(&str, &str)>) -> Arc<StatefulSet> {
    let annotations: serde_json::Map<String, Value> = annotation
        .into_iter()
        .map(|(key, value)| (format!("kruise.io/{key}"), json!(value)))
        .collect();
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": { "name": "w", "namespace": "default", "generation": generation, "annotations": annotations },
        "spec": { "selector": {}, "template": {} },
    });
    Arc::new(serde_json::from_value(set).unwrap())
}

/// The set before and now; without the former it is new.
#[rstest]
#[case::new(None, set(1, None), &["s", "workload/w"])]
#[case::another_spec(Some(set(1, None)), set(2, None), &["s"])]
#[case::another_status(Some(set(1, None)), set(1, None), &[])]
#[case::asks(Some(set(1, None)), set(1, Some(("auto-generate-persistent-pod-state", "true"))), &["workload/w"])]
#[case::other_annotations_are_recorded(
    Some(set(1, Some(("persistent-pod-annotations", "a")))), set(1, Some(("persistent-pod-annotations", "b"))), &["workload/w"])]
#[case::another_annotation(Some(set(1, None)), set(1, Some(("x", "y"))), &[])]
fn sets(#[case] old: Option<Arc<StatefulSet>>, #[case] new: Arc<StatefulSet>, #[case] want: &[&str]) {
    let change = match &old {
        Some(old) => Change::Updated(old, &new),
        None => Change::Added(&new),
    };
    assert_eq!(woken(|queue| set_changed(&states(), &change, queue)), want);
}

#[test]
fn sets_that_are_gone() {
    let set = set(1, None);
    let change = Change::Deleted(&set);
    assert_eq!(
        woken(|queue| set_changed(&states(), &change, queue)),
        ["s", "workload/w"]
    );
}
