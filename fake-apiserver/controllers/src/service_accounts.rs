//! Gives every namespace its `default` service account and the certificate authority's ConfigMap.

use std::time::Duration;

use client_kit::{JsonChange, watch_json};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::SelectAll;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

use super::runtime::{Queue, is_not_found};
use super::watching::{Change, watch};
use super::workloads::pod_control::is_namespace_going;
use client_kit::timer;
use machinery::meta::{ObjectMeta, string_map};

/// The longest delay before a failed key is tried again (client-go's).
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1000);
const CA_CONFIG_MAP: &str = "kube-root-ca.crt";
const CA_FILE: &str = "ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
    such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
    Kubernetes clusters.";

/// The service account and root CA controllers.
pub struct ServiceAccountController {
    client: Client,
    /// The certificates that clients in pods are to trust the server by.
    bundle: String,
}

/// Whether the certificate authority's ConfigMap has other data than it should, or lacks its description.
fn is_altered(object: &Value, bundle: &str) -> bool {
    object.name() == CA_CONFIG_MAP
        && (object.get("data") != Some(&json!({CA_FILE: bundle}))
            || string_map(object, "annotations")
                .get(DESCRIPTION)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty))
}

fn core(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind))
}

impl ServiceAccountController {
    /// A controller over `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            bundle: String::new(),
        }
    }

    /// With the certificates, in PEM, that clients in pods are to trust the server by.
    #[must_use]
    pub fn with_bundle(mut self, bundle: &str) -> Self {
        bundle.clone_into(&mut self.bundle);
        self
    }

    /// Runs until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(self) {
        let mut changes = SelectAll::new();
        changes.push(watch(&self.client, &core("Namespace")));
        // What every namespace has comes back when it is deleted.
        for (plural, name) in [("serviceaccounts", "default"), ("configmaps", CA_CONFIG_MAP)] {
            let query = format!("fieldSelector=metadata.name%3D{name}");
            let watch = watch_json(self.client.clone(), &format!("/api/v1/{plural}"), &query, true);
            let bundle = self.bundle.clone();
            changes.push(
                watch
                    .filter_map(move |change| {
                        let change = match change {
                            JsonChange::Gone(object) => Some(Change::Gone(object)),
                            JsonChange::Present(object) if is_altered(&object, &bundle) => {
                                Some(Change::Present(object))
                            }
                            _ => None,
                        };
                        async { change }
                    })
                    .boxed(),
            );
        }
        // Namespaces in which something could not be made or mended.
        let mut failed = Queue::with_delay_max(RETRY_DELAY_MAX);
        loop {
            tokio::select! {
                biased;
                change = changes.next() => {
                    let Some(change) = change else { return };
                    let (namespace, done) = self.heed(change).await;
                    note(&mut failed, namespace, done);
                }
                () = timer::until(failed.next_due()) => {
                    if let Some(namespace) = failed.pop() {
                        let done = self.fill(&namespace).await & self.mend(&namespace).await;
                        note(&mut failed, namespace, done);
                    }
                }
            }
        }
    }

    /// Processes a change: the namespace that it concerns, and whether that succeeded.
    async fn heed(&self, change: Change) -> (String, bool) {
        match change {
            Change::Present(object) if !object.namespace().is_empty() => {
                (object.namespace().to_owned(), self.restore(&object).await)
            }
            Change::Present(namespace) if !namespace.is_terminating() => {
                let name = namespace.name().to_owned();
                let done = self.fill(&name).await;
                (name, done)
            }
            Change::Gone(object) if !object.namespace().is_empty() => {
                let mut done = true;
                for wanted in self.wanted(object.namespace()) {
                    if wanted.name() == object.name() {
                        done &= self.ensure(object.namespace(), wanted).await;
                    }
                }
                (object.namespace().to_owned(), done)
            }
            Change::Present(namespace) | Change::Gone(namespace) => (namespace.name().to_owned(), true),
        }
    }

    /// Creates the objects that every namespace has.
    async fn fill(&self, namespace: &str) -> bool {
        let mut done = true;
        for object in self.wanted(namespace) {
            done &= self.ensure(namespace, object).await;
        }
        done
    }

    /// Looks at the certificate authority's ConfigMap again.
    async fn mend(&self, namespace: &str) -> bool {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{CA_CONFIG_MAP}");
        let Ok(request) = http::Request::get(path).body(Vec::new()) else {
            return true;
        };
        match self.client.request::<Value>(request).await {
            Ok(object) if is_altered(&object, &self.bundle) => self.restore(&object).await,
            _ => true,
        }
    }

    /// Restores the data of the certificate authority's ConfigMap.
    async fn restore(&self, object: &Value) -> bool {
        let mut object = object.clone();
        let namespace = object.namespace().to_owned();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &namespace, &core("ConfigMap"));
        object["data"] = json!({CA_FILE: self.bundle});
        object["metadata"]["annotations"][DESCRIPTION] = json!(CA_DESCRIPTION);
        let Ok(object) = shared_json::from_value(object) else {
            return true;
        };
        let replaced = api.replace(CA_CONFIG_MAP, &PostParams::default(), &object).await;
        is_settled(replaced, &namespace)
    }

    /// The objects that a namespace must have.
    fn wanted(&self, namespace: &str) -> [Value; 2] {
        [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": CA_CONFIG_MAP, "namespace": namespace,
                    "annotations": {DESCRIPTION: CA_DESCRIPTION},
                },
                "data": {CA_FILE: self.bundle},
            }),
        ]
    }

    async fn ensure(&self, namespace: &str, object: Value) -> bool {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &core(kind));
        let Ok(object) = shared_json::from_value(object) else {
            return true;
        };
        is_settled(api.create(&PostParams::default(), &object).await, namespace)
    }
}

/// Whether nothing is left to do: it has been done, or cannot be, as its namespace goes.
fn is_settled(answer: Result<DynamicObject, kube::Error>, namespace: &str) -> bool {
    let Err(error) = answer else {
        return true;
    };
    tracing::debug!(%error, namespace, "fill a namespace");
    let is_there = matches!(&error, kube::Error::Api(status) if status.is_already_exists());
    is_there || is_not_found(&error) || is_namespace_going(&error)
}

/// Failed namespaces are tried again, with growing delays.
fn note(failed: &mut Queue<String>, namespace: String, done: bool) {
    if done {
        failed.succeeded(&namespace);
    } else {
        failed.add_failed(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_back() {
        let said = json!({DESCRIPTION: CA_DESCRIPTION});
        for (name, annotations, data, expected) in [
            (CA_CONFIG_MAP, said.clone(), json!({CA_FILE: ""}), false),
            (
                CA_CONFIG_MAP,
                json!({DESCRIPTION: "mine", "x": "y"}),
                json!({CA_FILE: ""}),
                false,
            ),
            (CA_CONFIG_MAP, said.clone(), json!({CA_FILE: "other"}), true),
            (
                CA_CONFIG_MAP,
                said.clone(),
                json!({CA_FILE: "", "more": "x"}),
                true,
            ),
            (CA_CONFIG_MAP, said.clone(), Value::Null, true),
            (CA_CONFIG_MAP, said.clone(), json!({}), true),
            (
                CA_CONFIG_MAP,
                json!({DESCRIPTION: ""}),
                json!({CA_FILE: ""}),
                true,
            ),
            (CA_CONFIG_MAP, Value::Null, json!({CA_FILE: ""}), true),
            ("mine", Value::Null, json!({"a": "b"}), false),
        ] {
            let object = json!({"metadata": {"name": name, "annotations": annotations}, "data": data});
            assert_eq!(is_altered(&object, ""), expected, "{object}");
        }
        // Even if something holds it that is to go.
        let going = json!({"metadata": {"name": CA_CONFIG_MAP, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(is_altered(&going, ""));
        let said = json!({"metadata": {"name": CA_CONFIG_MAP, "annotations": {DESCRIPTION: "x"}}, "data": {CA_FILE: "pem"}});
        assert!(!is_altered(&said, "pem"));
        assert!(is_altered(&said, "other"));
    }
}
