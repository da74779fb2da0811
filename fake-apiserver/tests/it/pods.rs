//! A pod's life.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "nginx", "image": "nginx:alpine"}]},
    })
}

#[test]
fn a_pod_runs_restarts_on_a_new_image_and_ends() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let (code, created) = request(&cluster, "POST", PODS, &pod("web")).await;
        assert_eq!(code, 201, "{created}");
        assert_eq!(created["status"]["phase"], "Pending");
        cluster.run_for(Duration::from_secs(5)).await;
        let (_, running) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        assert_eq!(running["status"]["phase"], "Running", "{running:#}");
        assert_eq!(running["status"]["containerStatuses"][0]["restartCount"], 0);

        let patch = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.7.9"}]);
        let (code, _) = crate::support::send(
            &cluster,
            "PATCH",
            &format!("{PODS}/web"),
            "application/json-patch+json",
            &patch,
        )
        .await;
        assert_eq!(code, 200);
        cluster.run_for(Duration::from_secs(5)).await;
        let (_, updated) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        assert_eq!(
            updated["status"]["containerStatuses"][0]["restartCount"], 1,
            "{updated:#}"
        );
        assert_eq!(
            updated["status"]["containerStatuses"][0]["image"],
            "docker.io/library/nginx:1.7.9"
        );
        assert_eq!(updated["metadata"]["uid"], running["metadata"]["uid"]);

        let (code, deleted) = request(&cluster, "DELETE", &format!("{PODS}/web"), &Value::Null).await;
        assert_eq!(
            (code, &deleted["metadata"]["deletionGracePeriodSeconds"]),
            (200, &json!(30))
        );
        cluster.run_for(Duration::from_secs(5)).await;
        let (code, _) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        assert_eq!(code, 404);
    });
}
