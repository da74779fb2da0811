//! `componentstatuses`: what the server says of the scheduler, of the controllers and of its store.

use fake_apiserver::{Cluster, ClusterBuilder};
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, simulate};

const PATH: &str = "/api/v1/componentstatuses";

fn healthy(name: &str) -> Value {
    json!({"metadata": {"name": name}, "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]})
}

fn refused(name: &str, port: u16) -> Value {
    let message = format!(
        "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    json!({"metadata": {"name": name}, "conditions": [{"type": "Healthy", "status": "False", "message": message}]})
}

/// Lists what a cluster says with a query. The list has no revision, as the real server's.
fn check(cluster: ClusterBuilder, query: &str, expected: &[Value]) {
    simulate(|| async {
        let cluster = cluster.start().await.expect("a cluster");
        let (code, list) = request(&cluster, "GET", &format!("{PATH}{query}"), &Value::Null).await;
        let expected = json!({
            "kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": expected,
        });
        assert_eq!((code, list), (200, expected));
    });
}

#[rstest]
#[case::all_run(Cluster::builder().nodes(1), "", &[healthy("controller-manager"), healthy("etcd-0"), healthy("scheduler")])]
#[case::no_nodes(Cluster::builder().nodes(0), "", &[healthy("controller-manager"), healthy("etcd-0"), refused("scheduler", 10259)])]
#[case::no_controllers(
    Cluster::builder().nodes(1).controllers(false), "",
    &[refused("controller-manager", 10257), healthy("etcd-0"), healthy("scheduler")],
)]
#[case::one_by_field(Cluster::builder().nodes(1), "?fieldSelector=metadata.name%3Detcd-0", &[healthy("etcd-0")])]
#[case::none_by_label(Cluster::builder().nodes(1), "?labelSelector=a%3Db", &[])]
fn lists(#[case] cluster: ClusterBuilder, #[case] query: &str, #[case] expected: &[Value]) {
    check(cluster, query, expected);
}

/// One that does not exist is an error of the server's own, as there.
#[test]
fn gets() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let (code, one) = request(&cluster, "GET", &format!("{PATH}/scheduler"), &Value::Null).await;
        let mut expected = healthy("scheduler");
        expected["kind"] = json!("ComponentStatus");
        expected["apiVersion"] = json!("v1");
        assert_eq!((code, one), (200, expected));

        let (code, answer) = request(&cluster, "GET", &format!("{PATH}/kubelet"), &Value::Null).await;
        assert_eq!(
            (code, &answer["message"]),
            (500, &json!("component not found: kubelet"))
        );
    });
}
