//! Within one process objects go to the server and come from it as they are, and share memory with each other.

use client_kit::ObjectClient;
use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::simulate;

fn request(method: &str, path: &str, kind: &str, body: Value) -> http::Request<Value> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body)
        .expect("a request")
}

const JSON: &str = "application/json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn a_server_in_this_process_is_sent_objects_once_it_has_answered_with_one() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let client = ObjectClient::new(cluster.client());
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
        let mut shared = Vec::new();
        for name in ["x", "y"] {
            let sent = map(name);
            let made = client
                .request(request("POST", MAPS, JSON, sent.clone()))
                .await
                .expect("made");
            assert_eq!(made["data"], sent["data"]);
            shared.push(made["data"].is_same(&sent["data"]));
        }
        // The first goes as text: nobody knows yet where the server is.
        assert_eq!(shared, [false, true]);
        // What is sent without a look at the answer is there, too, and refusals are told.
        client
            .send(request("POST", MAPS, JSON, map("z")))
            .await
            .expect("sent");
        let again = client
            .send(request("POST", MAPS, JSON, map("z")))
            .await
            .expect_err("there is one");
        assert!(again.to_string().contains("already exists"), "{again}");
        // A refusal shows what was sent, as text.
        let mut wrong = map("w");
        wrong["data"] = json!({"a": 1});
        let refused = client
            .request(request("POST", MAPS, JSON, wrong))
            .await
            .expect_err("no text");
        assert!(
            refused
                .to_string()
                .contains("cannot unmarshal number into Go struct field ConfigMap.data of type string"),
            "{refused}"
        );
    });
}

#[test]
fn what_a_write_leaves_alone_is_the_same_memory() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let client = ObjectClient::new(cluster.client());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        });
        let before = client
            .request(request("POST", PODS, JSON, pod))
            .await
            .expect("made");
        let patch = |phase: &str| json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}});
        let path = format!("{PODS}/p/status");
        let one = client
            .request(request("PATCH", &path, STRATEGIC, patch("Running")))
            .await
            .expect("patched");
        let other = client
            .request(request("PATCH", &path, STRATEGIC, patch("Succeeded")))
            .await
            .expect("patched");
        let ready = "/status/conditions/0";
        assert_eq!(other["status"]["phase"], "Succeeded");
        assert!(one["spec"].is_same(&before["spec"]) && other["spec"].is_same(&before["spec"]));
        assert!(other["metadata"]["labels"].is_same(&before["metadata"]["labels"]));
        let conditions = (one.pointer(ready), other.pointer(ready));
        assert!(
            matches!(conditions, (Some(one), Some(other)) if one.is_same(other)),
            "{conditions:?}"
        );
    });
}
