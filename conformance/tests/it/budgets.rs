//! Requests about pods that a PodUnavailableBudget guards, where the API server's part in them counts.

use std::time::Duration;

use conformance::action::Kubectl;
use conformance::backend::{FakeCluster, FakeOptions};
use rstest::rstest;
use shared_json::{Value, json};

/// A cluster with these gates, and a CloneSet of three pods of which so many may be missing.
async fn cluster(gates: &str, may_be_missing: u32) -> (FakeCluster, Kubectl) {
    let mut options = FakeOptions::default();
    options.environment.gates = gates.to_owned();
    let cluster = FakeCluster::start(options).await.expect("a cluster");
    let kubectl = Kubectl::new(cluster.client(), "default");
    let labels = json!({"app": "a"});
    let set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "w"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}}},
    });
    let budget = json!({
        "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget", "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": labels}, "maxUnavailable": may_be_missing},
    });
    for object in [set, budget] {
        kubectl.create(&object).await.expect("created");
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    (cluster, kubectl)
}

/// The names of the pods.
async fn pods(kubectl: &Kubectl) -> Vec<String> {
    let api = kubectl.api_named("pods", None).await.expect("pods");
    kubectl.names(&api, "app=a").await.expect("pods")
}

async fn budget(kubectl: &Kubectl) -> Value {
    let path = "/apis/policy.kruise.io/v1alpha1/namespaces/default/podunavailablebudgets/b";
    kubectl.request("GET", path, None).await.expect("the budget")
}

/// Row 29: the webhook reads nothing of an eviction's body, so that the pod's record stands for a while.
#[tokio::test(start_paused = true)]
async fn an_eviction_that_is_only_tried_takes_budget() {
    let (_cluster, kubectl) = cluster("", 1).await;
    let pods = pods(&kubectl).await;
    let [pod, other, ..] = &*pods else {
        panic!("{pods:?}")
    };
    let evict = |pod: &str| {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
            "deleteOptions": {"dryRun": ["All"]},
        });
        let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
        let kubectl = kubectl.clone();
        async move { kubectl.request("POST", &path, Some(&eviction)).await }
    };
    evict(pod).await.expect("tried");
    let status = budget(&kubectl).await["status"].clone();
    assert_eq!(status["unavailableAllowed"], 0, "{status}");
    assert!(status["disruptedPods"].get(pod.as_str()).is_some(), "{status}");
    let refused = evict(other).await.expect_err("there is no budget left");
    assert!(
        refused
            .to_string()
            .contains("pub unavailable allowed is negative"),
        "{refused}"
    );
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(budget(&kubectl).await["status"]["unavailableAllowed"], 1);
    assert_eq!(self::pods(&kubectl).await, pods);
}

/// Rows 30 and 31: the gates, how many may be missing, and whether the image of a pod may be changed.
#[rstest]
#[case::row_30("", 0, true)]
#[case::row_31("PodUnavailableBudgetUpdateGate=true", 1, true)]
#[case::row_31_refused("PodUnavailableBudgetUpdateGate=true", 0, false)]
#[tokio::test(start_paused = true)]
async fn changes_of_images(#[case] gates: &str, #[case] may_be_missing: u32, #[case] allowed: bool) {
    let (_cluster, kubectl) = cluster(gates, may_be_missing).await;
    let pods = pods(&kubectl).await;
    let api = kubectl.api_named("pods", None).await.expect("pods");
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "app:v2"}]}});
    let params = kube::api::PatchParams::default();
    let patched = api
        .patch(&pods[0], &params, &kube::api::Patch::Strategic(patch))
        .await;
    assert_eq!(patched.is_ok(), allowed, "{patched:?}");
}
