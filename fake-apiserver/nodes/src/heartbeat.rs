//! A node's heartbeat: a Lease of its own, and its condition `Ready`.

use http::Request;
use http::header::{CONTENT_TYPE, USER_AGENT};
use jiff::Timestamp;
use kube::Client;
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::rfc3339;
use shared_json::{Value, json};

use super::node::ready_conditions;

/// Where the Leases of nodes are.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// How long a Lease says that it holds (the kubelet's default).
const LEASE_SECONDS: u32 = 40;

async fn send(client: &Client, request: http::request::Builder, body: &Value) -> Result<Value, kube::Error> {
    let request = request
        .header(USER_AGENT, "kubelet")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// Renews the node's Lease, or makes it.
///
/// # Errors
/// If the server refuses.
pub async fn renew(client: &Client, node: &str, now: Timestamp) -> Result<(), kube::Error> {
    let micro = format!("{now:.6}");
    let renewed =
        json!({"spec": {"holderIdentity": node, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": micro}});
    let patch =
        Request::patch(format!("{LEASES}/{node}")).header(CONTENT_TYPE, "application/merge-patch+json");
    match send(client, patch, &renewed).await {
        Err(error) if is_not_found(&error) => {}
        other => return other.map(|_| ()),
    }
    let owner = send(
        client,
        Request::get(format!("/api/v1/nodes/{node}")),
        &Value::Null,
    )
    .await?;
    let mut lease = renewed;
    lease["apiVersion"] = json!("coordination.k8s.io/v1");
    lease["kind"] = json!("Lease");
    lease["metadata"] = json!({
        "name": node, "namespace": "kube-node-lease",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": owner.uid()}],
    });
    let create = Request::post(LEASES).header(CONTENT_TYPE, "application/json");
    send(client, create, &lease).await.map(|_| ())
}

/// Takes the node's Lease away: it need not be renewed any more.
///
/// # Errors
/// If the server refuses.
pub(super) async fn give_up(client: &Client, node: &str) -> Result<(), kube::Error> {
    let delete = Request::delete(format!("{LEASES}/{node}")).header(CONTENT_TYPE, "application/json");
    match send(client, delete, &json!({})).await {
        Err(error) if !is_not_found(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Sets the node's conditions to ready, with its pressures (types of conditions), if they differ.
///
/// # Errors
/// If the server refuses.
pub(super) async fn report_ready(
    client: &Client,
    node: &str,
    now: Timestamp,
    pressures: &[&str],
) -> Result<(), kube::Error> {
    let shown = send(
        client,
        Request::get(format!("/api/v1/nodes/{node}")),
        &Value::Null,
    )
    .await?;
    let status_of = |kind: &str| {
        let conditions = at(&shown, "status.conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == kind);
        found.map(|condition| condition["status"].clone())
    };
    let now = rfc3339(now);
    let changed: Vec<Value> = ready_conditions(&now, pressures)
        .into_iter()
        .filter(|condition| {
            status_of(condition["type"].as_str().unwrap_or_default()).as_ref() != Some(&condition["status"])
        })
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let patch = Request::patch(format!("/api/v1/nodes/{node}/status"))
        .header(CONTENT_TYPE, "application/strategic-merge-patch+json");
    send(client, patch, &json!({"status": {"conditions": changed}}))
        .await
        .map(|_| ())
}
