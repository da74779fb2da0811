use std::sync::Arc;

use futures::FutureExt as _;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::pods::test_pods::TestPod;

/// The job `d/j` with this selector, and a status.
fn jobs(selector: &Value, status: &Value) -> Informer<ImagePullJob> {
    let mut job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"image": "nginx:1", "completionPolicy": {}, "pullSecrets": ["s"]},
        "status": status,
    });
    for (name, value) in selector.as_object().into_iter().flatten() {
        job["spec"][name] = value.clone();
    }
    let jobs = Informer::new();
    jobs.learn(
        &ObjectKey::new("default", "j"),
        Some(serde_json::from_value(job).expect("a job")),
    );
    jobs
}

fn of_pods() -> Value {
    json!({"podSelector": {"matchLabels": {"app": "web"}}})
}

fn runs() -> Value {
    json!({"desired": 1})
}

fn is_woken(wake: impl FnOnce(&WorkQueue<ObjectKey>)) -> bool {
    let queue = WorkQueue::new();
    wake(&queue);
    queue.next().now_or_never().flatten().is_some()
}

/// A pod with the label `app=web` on a node, or on none if that is empty.
fn web(node: &str) -> TestPod {
    TestPod::new("p").label("app", "web").node(node)
}

fn other(node: &str) -> TestPod {
    web(node).label("app", "db")
}

#[rstest]
#[case::its_pod(of_pods(), runs(), None, web("a"), true)]
#[case::a_pod_without_a_node(of_pods(), runs(), None, web(""), false)]
#[case::another_pod(of_pods(), runs(), None, other("a"), false)]
#[case::placed(of_pods(), runs(), Some(web("")), web("a"), true)]
#[case::unchanged(of_pods(), runs(), Some(web("a")), web("a"), false)]
#[case::its_label_goes(of_pods(), runs(), Some(web("a")), other("a"), true)]
#[case::going(
    of_pods(), runs(), Some(web("a")), web("a").set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z")), true
)]
#[case::of_another_namespace(of_pods(), runs(), None, web("a").set("/metadata/namespace", json!("other")), false)]
#[case::a_job_of_nodes(json!({"selector": {"names": ["a"]}}), runs(), None, web("a"), false)]
#[case::a_job_that_is_over(of_pods(), json!({"desired": 1, "completionTime": "1970-01-01T00:00:00Z"}), None, web("a"), false)]
fn pods_wake(
    #[case] selector: Value,
    #[case] status: Value,
    #[case] old: Option<TestPod>,
    #[case] new: TestPod,
    #[case] expected: bool,
) {
    let cached = |pod: TestPod| Arc::new(CachedPod::from(pod.build()));
    let (old, new) = (old.map(cached), cached(new));
    let change = match &old {
        Some(old) => Change::Updated(old, &new),
        None => Change::Added(&new),
    };
    let jobs = jobs(&selector, &status);
    assert_eq!(is_woken(|queue| pod_changed(&jobs, &change, queue)), expected);
}

/// The list of node `a`, with labels and the status of the tag `nginx:1`.
fn list(labels: &Value, phase: &str) -> Arc<NodeImage> {
    let list = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
        "metadata": {"name": "a", "labels": labels},
        "spec": {"images": {"nginx": {"tags": [{"tag": "1", "version": 0}]}}},
        "status": {"desired": 1, "succeeded": 0, "failed": 0, "pulling": 0, "imageStatuses": {"nginx": {"tags": [
            {"tag": "1", "phase": phase, "version": 0},
        ]}}},
    });
    Arc::new(serde_json::from_value(list).expect("a list"))
}

/// A job of nodes with `disk=ssd`: it looks at their lists, and at those that come and go.
#[rstest]
#[case::new(None, list(&json!({"disk": "ssd"}), "Pulling"), true)]
#[case::new_without_the_label(None, list(&json!({}), "Pulling"), false)]
#[case::unchanged(Some(list(&json!({"disk": "ssd"}), "Pulling")), list(&json!({"disk": "ssd"}), "Pulling"), false)]
#[case::pulled(Some(list(&json!({"disk": "ssd"}), "Pulling")), list(&json!({"disk": "ssd"}), "Succeeded"), true)]
#[case::pulled_elsewhere(Some(list(&json!({}), "Pulling")), list(&json!({}), "Succeeded"), false)]
#[case::labelled(Some(list(&json!({}), "Pulling")), list(&json!({"disk": "ssd"}), "Pulling"), true)]
#[case::another_label(Some(list(&json!({"disk": "ssd"}), "Pulling")), list(&json!({"disk": "ssd", "zone": "z"}), "Pulling"), false)]
fn lists_wake(#[case] old: Option<Arc<NodeImage>>, #[case] new: Arc<NodeImage>, #[case] expected: bool) {
    let change = match &old {
        Some(old) => Change::Updated(old, &new),
        None => Change::Added(&new),
    };
    let jobs = jobs(&json!({"selector": {"matchLabels": {"disk": "ssd"}}}), &runs());
    let pods = Informer::new();
    assert_eq!(
        is_woken(|queue| image_changed(&jobs, &pods, &change, queue)),
        expected
    );
}

#[rstest]
#[case::its_own("default", "s", "copies", true)]
#[case::another("default", "t", "copies", false)]
#[case::of_another_namespace("other", "s", "copies", false)]
#[case::among_the_copies("default", "s", "default", false)]
fn secrets_wake(
    #[case] namespace: &str,
    #[case] name: &str,
    #[case] copies_in: &str,
    #[case] expected: bool,
) {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}});
    let secret = Arc::new(HeldSecret::from(secret));
    let jobs = jobs(&json!({}), &runs());
    let change = Change::Added(&secret);
    assert_eq!(
        is_woken(|queue| secret_changed(&jobs, copies_in, &change, queue)),
        expected
    );
}
