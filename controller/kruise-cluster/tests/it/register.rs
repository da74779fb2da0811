//! Rows of the divergence register that show on a whole cluster alone: here OpenKruise does something else on purpose.

use std::fmt::Debug;
use std::time::Duration;

use controller::gates::FeatureGates;
use fake_apiserver::Cluster;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_api::v1alpha1::{CloneSet, PodUnavailableBudget};
use kruise_api::v1beta1::{DaemonSet, ImagePullJob, NodeImage, StatefulSet};
use kruise_cluster::{KruiseCluster, OpenKruise, controller};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A cluster with one node, and OpenKruise with these gates.
async fn start(gates: &str) -> KruiseCluster {
    let kruise = OpenKruise::default().gates(FeatureGates::parse(gates).expect("gates"));
    let cluster = kruise.start(Cluster::builder().nodes(1)).await;
    cluster.expect("a cluster with OpenKruise")
}

/// The fields that all workloads of pods have, and a number of pods.
fn workload<T: DeserializeOwned>(replicas: Option<i32>) -> T {
    read(json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "demo"}},
        "template": {
            "metadata": {"labels": {"app": "demo"}},
            "spec": {"containers": [{"name": "main", "image": "main:1"}]},
        },
    }))
}

fn read<T: DeserializeOwned>(specification: Value) -> T {
    serde_json::from_value(specification).expect("a specification")
}

/// Creates an object in `default`. What lists, changes and deletes objects of its kind.
async fn create<K>(cluster: &KruiseCluster, object: &K) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let objects = Api::default_namespaced(cluster.client());
    let created = objects.create(&PostParams::default(), object).await;
    created.expect("an object");
    objects
}

/// All objects of a kind in `default`.
async fn list<K>(cluster: &KruiseCluster) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::default_namespaced(cluster.client());
    let listed = objects.list(&ListParams::default()).await;
    listed.expect("a list").items
}

/// An image puller has written a status twelve to thirteen hours ago. OpenKruise's writes it again then.
#[tokio::test(start_paused = true)]
async fn a_status_of_images_that_is_as_it_was_is_not_written() {
    let cluster = start("ImagePullJobGate=true").await;
    cluster.run_for(Duration::from_secs(60)).await;
    let spec = json!({"image": "busybox:1", "completionPolicy": {"type": "Never"}});
    create(&cluster, &ImagePullJob::new("pull", read(spec))).await;
    cluster.run_for(Duration::from_secs(300)).await;
    let lists: Api<NodeImage> = Api::all(cluster.client());
    let before = lists.get("node1").await.expect("a list");
    assert_eq!(before.status.as_ref().map(|status| status.succeeded), Some(1));
    cluster.run_for(Duration::from_secs(14 * 60 * 60)).await;
    let after = lists.get("node1").await.expect("a list");
    assert_eq!(after.resource_version(), before.resource_version());
}

/// The name of a DaemonSet's revision has another template. OpenKruise's pass fails for ever then.
#[tokio::test(start_paused = true)]
async fn a_revision_of_a_daemon_set_whose_name_is_taken_gets_another() {
    let cluster = start("").await;
    let names = async || {
        let revisions: Vec<ControllerRevision> = list(&cluster).await;
        revisions
            .iter()
            .map(kube::ResourceExt::name_any)
            .collect::<Vec<_>>()
    };
    let set = DaemonSet::new("demo", workload(None));
    let sets = create(&cluster, &set).await;
    cluster.run_for(Duration::from_secs(30)).await;
    let first = names().await;
    assert_eq!(first.len(), 1);
    sets.delete("demo", &DeleteParams::foreground())
        .await
        .expect("a deletion");
    cluster.run_for(Duration::from_secs(60)).await;
    assert_eq!(names().await.len(), 0);

    let taken = ControllerRevision {
        metadata: ObjectMeta {
            name: first.first().cloned(),
            ..ObjectMeta::default()
        },
        data: Some(serde_json::from_value(json!({"spec": {}})).expect("data")),
        revision: 1,
    };
    create(&cluster, &taken).await;
    create(&cluster, &set).await;
    cluster.run_for(Duration::from_secs(30)).await;
    let status = sets
        .get_status("demo")
        .await
        .expect("a set")
        .status
        .expect("a status");
    assert_eq!((status.collision_count, status.number_ready), (Some(1), 1));
    assert_eq!(names().await.len(), 2);
}

/// Two counts of a StatefulSet's status are wrong, and nothing else is. OpenKruise's manager does not look at them.
#[tokio::test(start_paused = true)]
async fn counts_of_updated_pods_are_written_alone() {
    let cluster = start("").await;
    let sets = create(&cluster, &StatefulSet::new("demo", workload(Some(1)))).await;
    cluster.run_for(Duration::from_secs(30)).await;
    let counts = async || {
        let status = sets
            .get_status("demo")
            .await
            .expect("a set")
            .status
            .expect("a status");
        (status.updated_ready_replicas, status.updated_available_replicas)
    };
    let before = counts().await;
    let wrong = json!({"status": {"updatedReadyReplicas": 7, "updatedAvailableReplicas": 7}});
    let patched = sets
        .patch_status("demo", &PatchParams::default(), &Patch::Merge(wrong))
        .await;
    let patched = patched.expect("a patch").status.expect("a status");
    assert_eq!(patched.updated_ready_replicas, 7);
    cluster.run_for(Duration::from_secs(30)).await;
    assert_eq!(counts().await, before);
}

/// The budget of a CloneSet allows nothing, and the CloneSet shrinks: at most one deletion is refused before the budget is counted again.
#[tokio::test(start_paused = true)]
async fn a_clone_set_shrinks_whose_budget_allows_nothing() {
    let cluster = start("").await;
    let budget = json!({"selector": {"matchLabels": {"app": "demo"}}, "maxUnavailable": 0});
    create(&cluster, &PodUnavailableBudget::new("demo", read(budget))).await;
    let sets = create(&cluster, &CloneSet::new("demo", workload(Some(3)))).await;
    cluster.run_for(Duration::from_secs(30)).await;
    let fewer = Patch::Merge(json!({"spec": {"replicas": 2}}));
    sets.patch("demo", &PatchParams::default(), &fewer)
        .await
        .expect("a patch");
    cluster.run_for(Duration::from_secs(1)).await;
    let pods: Vec<Pod> = list(&cluster).await;
    let stay = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    assert_eq!(stay.count(), 2);
    let events: Vec<Event> = list(&cluster).await;
    let refused: i32 = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("FailedDelete"))
        .map(|event| event.count.unwrap_or(1))
        .sum();
    assert_eq!(refused, 1);
}
