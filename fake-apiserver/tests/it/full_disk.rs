//! A full disk below the data directory: writes are refused until there is room, and all else goes on.

use std::path::PathBuf;
use std::time::Duration;

use fake_apiserver::Cluster;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{exchange, request, simulate};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NO_SPACE: &str = "etcdserver: mvcc: database space exceeded";

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn cluster(directory: &Directory) -> Cluster {
    let cluster = Cluster::builder().nodes(0).controllers(false);
    let cluster = cluster.data_dir(directory.0.clone()).start().await;
    cluster.expect("a cluster")
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

fn definition() -> Value {
    json!({"metadata": {"name": "things.e.com"}, "spec": {
        "group": "e.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }})
}

#[rstest]
#[case::a_creation("POST", MAPS, map("b"))]
#[case::a_change("PUT", "/api/v1/namespaces/default/configmaps/a", map("a"))]
#[case::a_deletion("DELETE", "/api/v1/namespaces/default/configmaps/a", json!({}))]
#[case::a_definition("POST", DEFINITIONS, definition())]
fn writes_are_refused(#[case] method: &'static str, #[case] path: &'static str, #[case] mut body: Value) {
    let name = format!("full-disk-{}-{method}-{}", std::process::id(), path.len());
    let directory = Directory(std::env::temp_dir().join(name));
    simulate(move || async move {
        let cluster = cluster(&directory).await;
        assert_eq!(request(&cluster, "POST", MAPS, &map("a")).await.0, 201);
        let journal = cluster.journal().expect("a journal");
        journal.set_room(Some(10));
        if method == "PUT" {
            body["data"]["k"] = json!("w");
        }
        let (code, answer) = request(&cluster, method, path, &body).await;
        assert_eq!((code, &answer["message"]), (500, &json!(NO_SPACE)), "{answer}");
        // Reads and watches go on.
        let (code, list) = request(&cluster, "GET", MAPS, &Value::Null).await;
        assert_eq!(
            (code, list["items"].as_array().map(|items| items.len())),
            (200, Some(1)),
            "{list}"
        );
        assert_eq!(list["items"][0]["data"]["k"], "v");
        let watch = format!("{MAPS}?watch=1&timeoutSeconds=1");
        let (code, told) = exchange(&cluster, "GET", &watch, "application/json", &Value::Null).await;
        assert!(
            code == 200 && told.contains("\"type\":\"ADDED\""),
            "{code} {told}"
        );
        let (code, _) = request(
            &cluster,
            "GET",
            "/apis/e.com/v1/namespaces/default/things",
            &Value::Null,
        )
        .await;
        assert_eq!(code, 404);
        // Once there is room, so do writes.
        journal.set_room(None);
        cluster.run_for(Duration::from_secs(1)).await;
        let (code, answer) = request(&cluster, method, path, &body).await;
        assert!(code < 300, "{code} {answer}");
    });
}
