//! What is there before anyone asks: the namespaces and priority classes of a fresh server.

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::error::ClusterError;

/// The objects that a fresh server has.
fn objects() -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    vec![
        namespace("default"),
        namespace("kube-node-lease"),
        namespace("kube-public"),
        namespace("kube-system"),
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]
}

/// Creates the objects of a fresh server, and then `more`.
pub(super) async fn bootstrap(client: &Client, more: &[Value]) -> Result<(), ClusterError> {
    for object in objects().iter().chain(more) {
        create(client, object).await?;
    }
    Ok(())
}

async fn create(client: &Client, object: &Value) -> Result<(), ClusterError> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    };
    let dynamic =
        serde_json::from_value(object.clone()).map_err(|error| ClusterError::Object(error.to_string()))?;
    api.create(&PostParams::default(), &dynamic)
        .await
        .map(|_| ())
        .map_err(|source| ClusterError::Create {
            kind: text("/kind").to_owned(),
            name: text("/metadata/name").to_owned(),
            source: Box::new(source),
        })
}
