//! Rows of the divergence register that show on a whole cluster alone: here OpenKruise does something else on purpose.

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
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

/// A cluster with one node, and OpenKruise with these gates.
async fn start(gates: &str) -> KruiseCluster {
    let kruise = OpenKruise::default().gates(FeatureGates::parse(gates).expect("gates"));
    let cluster = kruise.start(Cluster::builder().nodes(1)).await;
    cluster.expect("a cluster with OpenKruise")
}

/// The fields that all workloads of pods have.
fn workload() -> Value {
    json!({
        "selector": {"matchLabels": {"app": "demo"}},
        "template": {
            "metadata": {"labels": {"app": "demo"}},
            "spec": {"containers": [{"name": "main", "image": "main:1"}]},
        },
    })
}

/// An image puller has written a status twelve to thirteen hours ago. OpenKruise's writes it again then.
#[tokio::test(start_paused = true)]
async fn a_status_of_images_that_is_as_it_was_is_not_written() {
    let cluster = start("ImagePullJobGate=true").await;
    cluster.run_for(Duration::from_secs(60)).await;
    let spec = json!({"image": "busybox:1", "completionPolicy": {"type": "Never"}});
    let job = ImagePullJob::new("pull", serde_json::from_value(spec).expect("a specification"));
    let jobs = Api::default_namespaced(cluster.client());
    jobs.create(&PostParams::default(), &job).await.expect("a job");
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
    let sets: Api<DaemonSet> = Api::default_namespaced(cluster.client());
    let revisions: Api<ControllerRevision> = Api::default_namespaced(cluster.client());
    let set = DaemonSet::new(
        "demo",
        serde_json::from_value(workload()).expect("a specification"),
    );
    let names = async || {
        let all = revisions.list(&ListParams::default()).await.expect("revisions");
        all.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>()
    };
    sets.create(&PostParams::default(), &set).await.expect("a set");
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
    revisions
        .create(&PostParams::default(), &taken)
        .await
        .expect("a revision");
    sets.create(&PostParams::default(), &set).await.expect("a set");
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
    let sets: Api<StatefulSet> = Api::default_namespaced(cluster.client());
    let mut spec = workload();
    spec["replicas"] = json!(1);
    let set = StatefulSet::new("demo", serde_json::from_value(spec).expect("a specification"));
    sets.create(&PostParams::default(), &set).await.expect("a set");
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
    let budget = PodUnavailableBudget::new("demo", serde_json::from_value(budget).expect("a specification"));
    let budgets = Api::default_namespaced(cluster.client());
    budgets
        .create(&PostParams::default(), &budget)
        .await
        .expect("a budget");
    let sets: Api<CloneSet> = Api::default_namespaced(cluster.client());
    let mut spec = workload();
    spec["replicas"] = json!(3);
    let set = CloneSet::new("demo", serde_json::from_value(spec).expect("a specification"));
    sets.create(&PostParams::default(), &set).await.expect("a set");
    cluster.run_for(Duration::from_secs(30)).await;
    let fewer = Patch::Merge(json!({"spec": {"replicas": 2}}));
    sets.patch("demo", &PatchParams::default(), &fewer)
        .await
        .expect("a patch");
    cluster.run_for(Duration::from_secs(1)).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pods = pods.list(&ListParams::default()).await.expect("pods");
    let stay = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    assert_eq!(stay.count(), 2);
    let events: Api<Event> = Api::default_namespaced(cluster.client());
    let events = events.list(&ListParams::default()).await.expect("events");
    let refused: i32 = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("FailedDelete"))
        .map(|event| event.count.unwrap_or(1))
        .sum();
    assert_eq!(refused, 1);
}
