//! The server's metrics.

use fake_apiserver::Cluster;
use shared_json::json;

use crate::support::{request, simulate};

#[test]
fn objects_are_counted_by_resource() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(false)
            .start()
            .await
            .expect("a cluster");
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        let event = json!({
            "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "action": "A",
            "type": "Normal", "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "c", "reportingInstance": "i",
        });
        assert_eq!(request(&cluster, "POST", events, &event).await.0, 201);
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let crd = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ]},
        });
        assert_eq!(request(&cluster, "POST", crds, &crd).await.0, 201);
        let asked = http::Request::get("/metrics")
            .body(Vec::new())
            .expect("a request");
        let metrics = cluster.client().request_text(asked).await.expect("metrics");
        for line in [
            "# TYPE apiserver_resource_objects gauge",
            "apiserver_resource_objects{group=\"\",resource=\"events\"} 1",
            "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 0",
            "apiserver_resource_objects{group=\"apiextensions.k8s.io\",resource=\"customresourcedefinitions\"} 1",
            "apiserver_resource_objects{group=\"example.com\",resource=\"things\"} 0",
        ] {
            assert!(
                metrics.lines().any(|has| has == line),
                "{line} is not in\n{metrics}"
            );
        }
        // What is stored nowhere, or under another group, is not counted.
        for group in ["authorization.k8s.io", "authentication.k8s.io", "events.k8s.io"] {
            let name = format!("group=\"{group}\"");
            assert!(!metrics.contains(&name), "{group} is in\n{metrics}");
        }
        // As many as the real server has, and one.
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("apiserver_resource_objects{"));
        assert_eq!(counts.count(), 58 + 1);
    });
}
