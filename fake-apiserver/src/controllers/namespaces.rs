//! Empties namespaces that are being deleted, and lets them go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
        let mut begun: BTreeSet<String> = BTreeSet::new();
        while let Some(change) = namespaces.next().await {
            let namespace = match change {
                Change::Present(namespace) => namespace,
                Change::Gone(namespace) => {
                    begun.remove(namespace.uid());
                    continue;
                }
            };
            let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
            let held = finalizers.is_some_and(|list| list.iter().any(|entry| entry == FINALIZER));
            if namespace.is_terminating() && held && begun.insert(namespace.uid().to_owned()) {
                tokio::spawn(empty(self.client.clone(), namespace));
            }
        }
    }
}

/// Deletes what is in the namespace until nothing is left, telling in its status what is; then removes the finalizer.
async fn empty(client: Client, namespace: Arc<Value>) {
    let mut told = Vec::new();
    loop {
        match delete_content(&client, namespace.name()).await {
            Ok(left) => {
                let conditions = left.conditions();
                if conditions != told {
                    if let Err(error) = tell(&client, &namespace, &conditions).await {
                        tracing::debug!(%error, namespace = namespace.name(), "tell what is left in a namespace");
                    }
                    told = conditions;
                }
                if left.kinds.is_empty() {
                    break;
                }
            }
            Err(error) => tracing::debug!(%error, namespace = namespace.name(), "empty a namespace"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    if let Err(error) = finalize(&client, &namespace).await {
        tracing::debug!(%error, namespace = namespace.name(), "finalize a namespace");
    }
}

/// What is still in a namespace.
#[derive(Debug, Default)]
struct Left {
    /// How many objects there are, by `plural.group`.
    kinds: BTreeMap<String, usize>,
    /// How many of them each finalizer holds.
    finalizers: BTreeMap<String, usize>,
}

/// Type, status, reason and message.
type Condition = (&'static str, &'static str, &'static str, String);

impl Left {
    /// The five conditions of a namespace that is being deleted.
    fn conditions(&self) -> Vec<Condition> {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let parts: Vec<String> = counts
                .iter()
                .map(|(name, count)| format!("{name} {word} {count} resource instances"))
                .collect();
            parts.join(", ")
        };
        let fine = |kind, reason, message: &str| (kind, "False", reason, message.to_owned());
        vec![
            fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            if self.kinds.is_empty() {
                fine(
                    "NamespaceContentRemaining",
                    "ContentRemoved",
                    "All content successfully removed",
                )
            } else {
                let text = format!("Some resources are remaining: {}", list(&self.kinds, "has"));
                ("NamespaceContentRemaining", "True", "SomeResourcesRemain", text)
            },
            if self.finalizers.is_empty() {
                fine(
                    "NamespaceFinalizersRemaining",
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished",
                )
            } else {
                let held = list(&self.finalizers, "in");
                let text = format!("Some content in the namespace has finalizers remaining: {held}");
                (
                    "NamespaceFinalizersRemaining",
                    "True",
                    "SomeFinalizersRemain",
                    text,
                )
            },
        ]
    }
}

async fn tell(client: &Client, namespace: &Value, conditions: &[Condition]) -> Result<(), kube::Error> {
    let now = namespace.meta_str("deletionTimestamp").to_owned();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, reason, message)| {
            json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
        })
        .collect();
    let body = json!({"metadata": {"uid": namespace.uid()}, "status": {"conditions": conditions}});
    let request = http::Request::patch(format!("/api/v1/namespaces/{}/status", namespace.name()))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

/// Asks for the deletion of everything in the namespace; gives what was still there afterwards.
async fn delete_content(client: &Client, namespace: &str) -> Result<Left, kube::Error> {
    let mut left = Left::default();
    for kind in served_kinds(client)
        .await?
        .into_iter()
        .filter(|kind| kind.namespaced)
    {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind.resource);
        if api.list_metadata(&ListParams::default()).await?.items.is_empty() {
            continue;
        }
        api.delete_collection(&DeleteParams::background(), &ListParams::default())
            .await?;
        let items = api.list_metadata(&ListParams::default()).await?.items;
        if !items.is_empty() {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            left.kinds.insert(name, items.len());
        }
        for finalizer in items
            .iter()
            .flat_map(|item| item.metadata.finalizers.iter().flatten())
        {
            *left.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
    Ok(left)
}

async fn finalize(client: &Client, namespace: &Value) -> Result<(), kube::Error> {
    // What is sent replaces the namespace, whatever version it is in by now.
    let mut body = namespace.clone();
    body["apiVersion"] = Value::from("v1");
    body["kind"] = Value::from("Namespace");
    for field in ["resourceVersion", "managedFields"] {
        body.metadata_mut().remove(field);
    }
    if let Some(list) = body.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        list.retain(|entry| entry != FINALIZER);
    }
    let request = http::Request::put(format!("/api/v1/namespaces/{}/finalize", namespace.name()))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told() {
        let left = Left {
            kinds: BTreeMap::from([("configmaps.".to_owned(), 1), ("jobs.batch".to_owned(), 2)]),
            finalizers: BTreeMap::from([("e.com/f".to_owned(), 1)]),
        };
        let said: Vec<String> = left
            .conditions()
            .into_iter()
            .skip(3)
            .map(|(_, status, _, text)| format!("{status} {text}"))
            .collect();
        assert_eq!(
            said,
            [
                "True Some resources are remaining: configmaps. has 1 resource instances, jobs.batch has 2 resource instances",
                "True Some content in the namespace has finalizers remaining: e.com/f in 1 resource instances",
            ]
        );
        assert!(
            Left::default()
                .conditions()
                .iter()
                .all(|condition| condition.1 == "False")
        );
    }
}
