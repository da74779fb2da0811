//! Pods for which room is kept on a node, by their own status: the nodes that they get, and the pods that wait for that room.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Scheduler;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn create(cluster: &Cluster, path: &str, object: Value) {
    let (code, answer) = request(cluster, "POST", path, &object).await;
    assert_eq!(code, 201, "{path} {answer}");
}

async fn patch(cluster: &Cluster, path: &str, change: Value) {
    let (code, answer) = send(cluster, "PATCH", path, MERGE, &change).await;
    assert_eq!(code, 200, "{path} {answer}");
}

fn pod(name: &str, spec: Value) -> Value {
    let mut whole =
        json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]});
    whole.merge(&spec);
    json!({"metadata": {"name": name}, "spec": whole})
}

/// A cluster with a scheduler and these nodes, of two cores each.
async fn start(nodes: &[(&str, Value)]) -> Cluster {
    let builder = Cluster::builder().nodes(0).controllers(false);
    let cluster = builder.start().await.expect("a cluster");
    tokio::spawn(Scheduler::new(cluster.client(), cluster.clock()).run());
    let account = json!({"metadata": {"name": "default"}});
    create(&cluster, "/api/v1/namespaces/default/serviceaccounts", account).await;
    for (priority, value) in [("high", 100), ("low", 1)] {
        let class = json!({"metadata": {"name": priority}, "value": value, "preemptionPolicy": "Never"});
        create(&cluster, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    }
    for (name, taints) in nodes {
        let node = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "pods": "10"}}});
        create(&cluster, "/api/v1/nodes", node).await;
        patch(
            &cluster,
            &format!("/api/v1/nodes/{name}"),
            json!({"spec": {"taints": taints}}),
        )
        .await;
    }
    cluster
}

async fn node_of(cluster: &Cluster, name: &str) -> Value {
    let (_, pod) = request(cluster, "GET", &format!("{PODS}/{name}"), &Value::Null).await;
    pod["spec"]["nodeName"].clone()
}

/// Of nodes that are equal otherwise: the first by name, unless room is kept on another, and that is there and fits.
#[rstest]
#[case::none(json!(null), "a")]
#[case::another(json!("b"), "b")]
#[case::not_there(json!("z"), "a")]
#[case::too_small(json!("c"), "a")]
fn where_room_is_kept(#[case] nominated: Value, #[case] expected: &str) {
    simulate(move || async move {
        let taint = json!([{"key": "k", "effect": "NoSchedule"}]);
        let cluster = start(&["a", "b", "c"].map(|name| (name, taint.clone()))).await;
        patch(
            &cluster,
            "/api/v1/nodes/c/status",
            json!({"status": {"allocatable": {"cpu": "1"}}}),
        )
        .await;
        create(&cluster, PODS, pod("p", json!({"priorityClassName": "high"}))).await;
        cluster.run_for(Duration::from_secs(1)).await;
        let path = format!("{PODS}/p");
        patch(
            &cluster,
            &format!("{path}/status"),
            json!({"status": {"nominatedNodeName": nominated}}),
        )
        .await;
        patch(
            &cluster,
            &path,
            json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}),
        )
        .await;
        cluster.run_for(Duration::from_secs(20)).await;
        assert_eq!(node_of(&cluster, "p").await, expected);
    });
}

/// The result for a pod that waits because room is kept on the only node for another, once that changes.
#[rstest]
#[case::kept(json!({"status": {"phase": "Pending"}}), "low", false)]
#[case::given_up(json!({"status": {"nominatedNodeName": null}}), "low", true)]
#[case::moved(json!({"status": {"nominatedNodeName": "elsewhere"}}), "low", true)]
#[case::for_an_equal(json!({"status": {"nominatedNodeName": null}}), "high", true)]
#[case::gone(json!(null), "low", true)]
fn who_waits_for_that_room(#[case] change: Value, #[case] priority: &'static str, #[case] goes: bool) {
    simulate(move || async move {
        let cluster = start(&[("a", json!(null))]).await;
        let nowhere = json!({"priorityClassName": "high", "nodeSelector": {"x": "y"}});
        create(&cluster, PODS, pod("q", nowhere)).await;
        let (q, kept) = (format!("{PODS}/q"), json!({"status": {"nominatedNodeName": "a"}}));
        cluster.run_for(Duration::from_secs(1)).await;
        patch(&cluster, &format!("{q}/status"), kept).await;
        create(&cluster, PODS, pod("p", json!({"priorityClassName": priority}))).await;
        cluster.run_for(Duration::from_secs(1)).await;
        assert_eq!(node_of(&cluster, "p").await, Value::Null);
        if change.is_null() {
            request(&cluster, "DELETE", &q, &json!({"gracePeriodSeconds": 0})).await;
        } else {
            patch(&cluster, &format!("{q}/status"), change).await;
        }
        cluster.run_for(Duration::from_secs(20)).await;
        assert_eq!(node_of(&cluster, "p").await == "a", goes);
    });
}

/// A pod that can preempt no others keeps no room, whatever its status said before.
#[test]
fn in_vain() {
    simulate(move || async move {
        let cluster = start(&[("a", json!(null))]).await;
        let class = json!({"metadata": {"name": "top"}, "value": 1000});
        create(&cluster, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
        let nowhere = json!({"priorityClassName": "top", "nodeSelector": {"x": "y"}});
        create(&cluster, PODS, pod("q", nowhere)).await;
        cluster.run_for(Duration::from_secs(1)).await;
        let q = format!("{PODS}/q");
        patch(
            &cluster,
            &format!("{q}/status"),
            json!({"status": {"nominatedNodeName": "a"}}),
        )
        .await;
        create(&cluster, PODS, pod("p", json!({"priorityClassName": "low"}))).await;
        cluster.run_for(Duration::from_secs(1)).await;
        assert_eq!(node_of(&cluster, "p").await, Value::Null);
        // It is tried again after five minutes, and gives up.
        cluster.run_for(Duration::from_secs(6 * 60)).await;
        let (_, pod) = request(&cluster, "GET", &q, &Value::Null).await;
        assert_eq!(pod["status"]["nominatedNodeName"], Value::Null, "{pod}");
        assert_eq!(node_of(&cluster, "p").await, "a");
    });
}
