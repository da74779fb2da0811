//! The Rust examples about OpenKruise: each is compiled and run here, and a test of `fake-apiserver` compares the texts.

use std::time::Duration;

use fake_apiserver::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kruise_api::v1alpha1::{CloneSet, CloneSetSpec, CloneSetUpdateStrategy};
use kruise_cluster::OpenKruise;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams, ResourceExt};
use serde_json::json;

/// A CloneSet of three pods, whose pods change in place where they can.
pub(crate) fn demo(image: &str) -> CloneSet {
    let strategy = CloneSetUpdateStrategy {
        kind: Some("InPlaceIfPossible".to_owned()),
        ..CloneSetUpdateStrategy::default()
    };
    let spec = CloneSetSpec {
        replicas: Some(3),
        selector: serde_json::from_value(json!({"matchLabels": {"app": "demo"}})).expect("a selector"),
        template: json!({
            "metadata": {"labels": {"app": "demo"}},
            "spec": {"containers": [{"name": "nginx", "image": image}]},
        }),
        update_strategy: Some(strategy),
        ..CloneSetSpec::default()
    };
    CloneSet::new("demo", spec)
}

/// The pods of `default`, by name.
pub(crate) async fn pods(cluster: &Cluster) -> Result<Vec<Pod>, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    Ok(pods.list(&ListParams::default()).await?.items)
}

/// Whether a pod's container runs an image.
fn runs(pod: &Pod, image: &str) -> bool {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_deref());
    statuses.is_some_and(|statuses| matches!(statuses, [container] if container.image.ends_with(image)))
}

#[tokio::test(start_paused = true)]
async fn an_image_changes_in_place() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = OpenKruise::default()
        .start(Cluster::builder().seed(7).nodes(3))
        .await?;
    let sets: Api<CloneSet> = Api::default_namespaced(cluster.client());
    sets.create(&PostParams::default(), &demo("nginx:1.7.8")).await?;
    cluster.run_for(Duration::from_secs(60)).await; // takes no real time
    let before = pods(&cluster).await?;
    let change = Patch::Merge(json!({"spec": demo("nginx:1.7.9").spec}));
    sets.patch("demo", &PatchParams::default(), &change).await?;
    cluster.run_for(Duration::from_secs(60)).await;
    let after = pods(&cluster).await?;
    let uids = |pods: &[Pod]| pods.iter().map(ResourceExt::uid).collect::<Vec<_>>();
    assert_eq!(uids(&before), uids(&after)); // the same pods
    assert!(after.iter().all(|pod| runs(pod, "nginx:1.7.9")));
    Ok(())
}
