//! What is there when it has started, and what its options change.

use std::time::Duration;

use controller::gates::FeatureGates;
use fake_apiserver::Cluster;
use fake_apiserver::nodes::NodeSpec;
use kruise_api::v1beta1::NodeImage;
use kruise_cluster::{KruiseCluster, OpenKruise, controller};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

/// The gate of ImagePullJobs, which is off in OpenKruise 1.9 unless said otherwise.
const PULL_JOBS: &str = "ImagePullJobGate=true";

fn with_gates(text: &str) -> OpenKruise {
    OpenKruise::default().gates(FeatureGates::parse(text).expect("gates"))
}

async fn start(kruise: OpenKruise) -> KruiseCluster {
    let builder = Cluster::builder().nodes(2);
    kruise.start(builder).await.expect("a cluster with OpenKruise")
}

/// A job that pulls `busybox:1` on every node.
fn job() -> kruise_api::v1beta1::ImagePullJob {
    let spec = json!({"image": "busybox:1", "completionPolicy": {"type": "Never"}});
    kruise_api::v1beta1::ImagePullJob::new("pull", serde_json::from_value(spec).expect("a specification"))
}

/// The nodes on which a job's image has been pulled.
async fn pulled(cluster: &KruiseCluster) -> usize {
    cluster.run_for(Duration::from_secs(60)).await;
    let jobs = Api::default_namespaced(cluster.client());
    jobs.create(&PostParams::default(), &job()).await.expect("a job");
    cluster.run_for(Duration::from_secs(120)).await;
    let images: Api<NodeImage> = Api::all(cluster.client());
    let images = images
        .list(&ListParams::default())
        .await
        .expect("the lists of images");
    let has = |image: &NodeImage| {
        let status = image
            .status
            .as_ref()
            .map(|status| json!(status))
            .unwrap_or(Value::Null);
        status["imageStatuses"]["busybox"]["tags"][0]["phase"] == "Succeeded"
    };
    images.iter().filter(|image| has(image)).count()
}

#[tokio::test(start_paused = true)]
async fn each_node_has_a_daemon_unless_said_otherwise() {
    assert_eq!(pulled(&start(with_gates(PULL_JOBS)).await).await, 2);
    assert_eq!(
        pulled(&start(with_gates(PULL_JOBS).daemons(false)).await).await,
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_later_has_a_daemon_too() {
    let cluster = start(with_gates(PULL_JOBS)).await;
    cluster.run_for(Duration::from_secs(60)).await;
    cluster.add_node(NodeSpec::numbered(3)).expect("a third node");
    assert_eq!(pulled(&cluster).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_gate_brings_its_kind() {
    for (gates, served) in [("", false), (PULL_JOBS, true)] {
        let cluster = start(with_gates(gates)).await;
        let jobs: Api<kruise_api::v1beta1::ImagePullJob> = Api::default_namespaced(cluster.client());
        assert_eq!(jobs.list(&ListParams::default()).await.is_ok(), served);
    }
}

/// The options of the manager can be changed: here it looks at another namespace alone.
#[tokio::test(start_paused = true)]
async fn a_manager_of_one_namespace_lets_the_others_be() {
    let own = |options: controller::Options| controller::Options {
        namespace: Some("elsewhere".to_owned()),
        ..options
    };
    for (kruise, pods) in [
        (OpenKruise::default(), 3),
        (OpenKruise::default().options(own), 0),
    ] {
        let cluster = start(kruise).await;
        let sets = Api::default_namespaced(cluster.client());
        sets.create(&PostParams::default(), &super::examples::demo("nginx:1"))
            .await
            .expect("a set");
        cluster.run_for(Duration::from_secs(30)).await;
        let found = super::examples::pods(&cluster).await.expect("pods");
        assert_eq!(
            found.len(),
            pods,
            "{:?}",
            found.iter().map(|pod| pod.name_any()).collect::<Vec<_>>()
        );
    }
}
