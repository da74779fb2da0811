//! The manager of an in-process cluster has the rights of its role alone.

use std::time::Duration;

use conformance::action::Kubectl;
use conformance::backend::{FakeCluster, FakeOptions};
use rstest::rstest;
use shared_json::json;

/// How many pods a CloneSet of two gets, after this object is taken away from the installation.
#[rstest]
#[case::with_its_role(None, 2)]
#[case::without_its_role(Some("kruise-manager-rolebinding"), 0)]
#[tokio::test(start_paused = true)]
async fn a_right_that_the_manager_lacks_shows(#[case] removed: Option<&str>, #[case] expected: usize) {
    let options = FakeOptions::default();
    let cluster = FakeCluster::start(options).await.expect("a cluster");
    let kubectl = Kubectl::new(cluster.client(), "default");
    if let Some(name) = removed {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}");
        kubectl.request("DELETE", &path, None).await.expect("deleted");
    }
    let labels = json!({"app": "a"});
    let set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "w"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:v1"}]}}},
    });
    kubectl.create(&set).await.expect("created");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let api = kubectl.api_named("pods", None).await.expect("pods");
    let pods = kubectl.names(&api, "app=a").await.expect("pods");
    assert_eq!(pods.len(), expected, "{pods:?}");
}
