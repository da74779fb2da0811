//! Empties namespaces that are being deleted, and lets them go.

use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::watching::{Change, served_kinds, watch};
use crate::meta::ObjectMeta;
use crate::strategy::namespace::FINALIZER;

/// How long it waits before it looks again at a namespace that is not empty yet.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The namespace controller.
pub struct NamespaceController {
    client: Client,
}

impl NamespaceController {
    /// A controller over `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Runs until dropped.
    pub async fn run(self) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let mut namespaces = watch(&self.client, &kind);
        while let Some(change) = namespaces.next().await {
            let Change::Present(namespace) = change else {
                continue;
            };
            let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
            let held = finalizers.is_some_and(|list| list.iter().any(|entry| entry == FINALIZER));
            if namespace.is_terminating() && held {
                tokio::spawn(empty(self.client.clone(), namespace));
            }
        }
    }
}

/// Deletes what is in the namespace until nothing is left, then removes the finalizer.
async fn empty(client: Client, namespace: Value) {
    loop {
        match delete_content(&client, namespace.name()).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, namespace = namespace.name(), "empty a namespace"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    if let Err(error) = finalize(&client, &namespace).await {
        tracing::debug!(%error, namespace = namespace.name(), "finalize a namespace");
    }
}

/// Asks for the deletion of everything in the namespace; returns how much was still there.
async fn delete_content(client: &Client, namespace: &str) -> Result<usize, kube::Error> {
    let mut left = 0;
    for kind in served_kinds(client)
        .await?
        .into_iter()
        .filter(|kind| kind.namespaced)
    {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind.resource);
        let present = api.list_metadata(&ListParams::default()).await?.items.len();
        if present > 0 {
            left += present;
            api.delete_collection(&DeleteParams::default(), &ListParams::default())
                .await?;
        }
    }
    Ok(left)
}

async fn finalize(client: &Client, namespace: &Value) -> Result<(), kube::Error> {
    let body = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace.name(), "uid": namespace.uid()}, "spec": {},
    });
    let request = http::Request::put(format!("/api/v1/namespaces/{}/finalize", namespace.name()))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(|_| ())
}
