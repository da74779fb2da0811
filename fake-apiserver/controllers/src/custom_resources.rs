//! Deletes the objects of a CustomResourceDefinition that is being deleted, and lets it go.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use machinery::finalizers::DEFINITION as CRD_FINALIZER;
use machinery::meta::{ObjectMeta, at};
use shared_json::{Array, Value, json};

use super::watching::{Change, watch};

const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The controller behind the finalizer `customresourcecleanup.apiextensions.k8s.io`.
pub struct CustomResourceCleanup {
    client: Client,
}

fn definitions() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ))
}

impl CustomResourceCleanup {
    /// A controller over `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Runs until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(self) {
        let mut changes = watch(&self.client, &definitions());
        while let Some(change) = changes.next().await {
            let Change::Present(definition) = change else {
                continue;
            };
            if definition.is_terminating() && definition.finalizers().contains(&CRD_FINALIZER) {
                tokio::spawn(clean(self.client.clone(), definition));
            }
        }
    }
}

async fn clean(client: Client, definition: Arc<Value>) {
    loop {
        match delete_objects(&client, &definition).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, definition = definition.name(), "delete custom resources"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    let left: Vec<&str> = definition
        .finalizers()
        .into_iter()
        .filter(|name| *name != CRD_FINALIZER)
        .collect();
    let api: Api<DynamicObject> = Api::all_with(client, &definitions());
    let patch = json!({"metadata": {"uid": definition.uid(), "finalizers": left}});
    let patched = api
        .patch(definition.name(), &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    if let Err(error) = patched {
        tracing::debug!(%error, definition = definition.name(), "let a definition go");
    }
}

async fn delete_objects(client: &Client, definition: &Value) -> Result<usize, kube::Error> {
    let text = |path: &str| at(definition, path).and_then(Value::as_str).unwrap_or_default();
    let versions = at(definition, "spec.versions")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let served = versions
        .iter()
        .find(|version| version.get("served").and_then(Value::as_bool) == Some(true));
    let Some(version) = served
        .and_then(|version| version.get("name"))
        .and_then(Value::as_str)
    else {
        return Ok(0);
    };
    let gvk = GroupVersionKind::gvk(text("spec.group"), version, text("spec.names.kind"));
    let kind = ApiResource::from_gvk_with_plural(&gvk, text("spec.names.plural"));
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let items = all.list_metadata(&ListParams::default()).await?.items;
    for item in &items {
        let name = item.metadata.name.as_deref().unwrap_or_default();
        let api: Api<DynamicObject> = match item.metadata.namespace.as_deref() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
            None => all.clone(),
        };
        match api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => {
                other?;
            }
        }
    }
    Ok(items.len())
}
