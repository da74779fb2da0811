//! Empties namespaces that are being deleted, and lets them go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client_kit::SharedClock;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

use super::runtime::{Queue, is_not_found};
use super::watching::{Change, Served, ServedKind, served_kinds, watch, words};
use client_kit::timer;
use machinery::finalizers::NAMESPACE as FINALIZER;
use machinery::meta::{ObjectMeta, at};
use machinery::types::rfc3339;

/// The wait after each change of a namespace that is being deleted (the real one's grace, for objects that are just being
/// created there).
const GRACE: Duration = Duration::from_secs(5);
/// How long objects with finalizers are thought to take (the real one's estimate).
const FINALIZERS_SECONDS: u64 = 15;
/// The longest wait after a failure.
const FAILURE_DELAY_MAX: Duration = Duration::from_secs(60);
/// The condition about the discovery of all kinds.
const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";
/// The user agent of the requests, from which their field manager follows.
const USER_AGENT: &str = "kube-controller-manager";

/// The namespace controller.
pub struct NamespaceController {
    client: Client,
    clock: SharedClock,
    quick: bool,
}

impl NamespaceController {
    /// A controller over `client`.
    #[must_use]
    pub fn new(client: Client, clock: SharedClock) -> Self {
        Self {
            client,
            clock,
            quick: false,
        }
    }

    /// Whether it looks at once, and again soon, instead of after the real one's times.
    #[must_use]
    pub fn quick(mut self, quick: bool) -> Self {
        self.quick = quick;
        self
    }

    /// Runs until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(self) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let mut namespaces = watch(&self.client, &kind);
        let mut queue: Queue<String> = Queue::with_delay_max(FAILURE_DELAY_MAX);
        let grace = if self.quick { Duration::ZERO } else { GRACE };
        loop {
            let due = queue.next_due();
            tokio::select! {
                biased;
                change = namespaces.next() => match change {
                    Some(Change::Present(namespace)) if namespace.is_terminating() && is_held(&namespace) => {
                        queue.add_after(namespace.name().to_owned(), grace);
                    }
                    Some(_) => {}
                    None => return,
                },
                () = timer::until(due) => {
                    let Some(name) = queue.pop() else { continue };
                    match self.pass(&name).await {
                        Ok(None) => queue.succeeded(&name),
                        // The delays of failures begin with some milliseconds.
                        Ok(Some(_)) if self.quick => queue.add_failed(name),
                        Ok(Some(seconds)) => queue.add_after(name, Duration::from_secs(seconds / 2 + 1)),
                        Err(error) => {
                            tracing::debug!(%error, name, "empty a namespace");
                            queue.add_failed(name);
                        }
                    }
                }
            }
        }
    }

    /// Deletes the content of the namespace, reports the rest in its status, and finalizes it once it is empty. Returns for how
    /// many seconds the rest may stay.
    async fn pass(&self, name: &str) -> Result<Option<u64>, Failure> {
        let path = format!("/api/v1/namespaces/{name}");
        let namespace = match self.send("GET", &path, None).await {
            Err(error) if is_not_found(&error) => return Ok(None),
            other => other?,
        };
        if !namespace.is_terminating() || !is_held(&namespace) {
            return Ok(None);
        }
        let left = self.delete_content(&namespace).await;
        let stamp = rfc3339(self.clock.now_seconds());
        let conditions = with_conditions(at(&namespace, "status.conditions"), &left.conditions(), &stamp);
        let mut changed = namespace.clone();
        if at(&namespace, "status.conditions") != Some(&conditions) {
            changed["status"]["conditions"] = conditions;
            // What cannot be told now is told with the next pass.
            if let Err(error) = self.send("PUT", &format!("{path}/status"), Some(&changed)).await {
                tracing::debug!(%error, name, "tell what is left in a namespace");
            }
        }
        let errors: Vec<String> = left.undiscovered.into_iter().chain(left.errors).collect();
        if !errors.is_empty() {
            return Err(Failure::Content(errors.join(", ")));
        }
        if left.seconds > 0 {
            return Ok(Some(left.seconds));
        }
        // What is sent replaces the namespace, whatever version it is in by then.
        let mut body = self.send("GET", &path, None).await?;
        for field in ["resourceVersion", "managedFields"] {
            body.metadata_mut().remove(field);
        }
        body["spec"]["finalizers"] = json!(without_own(&body));
        match self.send("PUT", &format!("{path}/finalize"), Some(&body)).await {
            Err(error) if is_not_found(&error) => Ok(None),
            other => Ok(other.map(|_| None)?),
        }
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::USER_AGENT, USER_AGENT)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Asks for the deletion of everything in the namespace, of pods first: while there are any, nothing else goes.
    async fn delete_content(&self, namespace: &Value) -> Left {
        let mut left = Left::default();
        let served = served_kinds(&self.client).await;
        left.undiscovered = undiscovered(&served);
        let (pods, others): (Vec<ServedKind>, Vec<ServedKind>) = served
            .unwrap_or_default()
            .kinds
            .into_iter()
            .filter(|kind| kind.namespaced)
            .partition(is_pods);
        for kind in &pods {
            self.delete_kind(namespace, kind, &mut left).await;
        }
        if left.kinds.is_empty() {
            for kind in &others {
                self.delete_kind(namespace, kind, &mut left).await;
            }
        } else {
            // Of pods alone it is not told how many there are.
            left.kinds.clear();
            left.finalizers.clear();
        }
        left
    }

    async fn delete_kind(&self, namespace: &Value, kind: &ServedKind, left: &mut Left) {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace.name(), &*kind.resource);
        match self.delete_objects(namespace, kind, &api).await {
            Ok((objects, seconds)) => left.note(namespace.name(), kind, &objects, seconds),
            Err(error) => left.errors.push(words(&error)),
        }
    }

    /// The objects of a kind that are left after their deletion, by their finalizers; and how long they may take.
    async fn delete_objects(
        &self,
        namespace: &Value,
        kind: &ServedKind,
        api: &Api<DynamicObject>,
    ) -> Result<(Vec<Vec<String>>, u64), kube::Error> {
        // Where there is nothing, nothing is to be done; what cannot be told now is found out on the way.
        let there = api.list_metadata(&ListParams::default()).await;
        if there.is_ok_and(|there| there.items.is_empty()) {
            return Ok((Vec::new(), 0));
        }
        let seconds = if is_pods(kind) {
            let pods = api.list(&ListParams::default()).await?;
            let longest = pods
                .items
                .iter()
                .filter_map(|pod| grace(&pod.data.clone().into()))
                .max();
            let since = time_since(namespace, self.clock.now());
            longest.filter(|seconds| since < *seconds).unwrap_or_default()
        } else {
            0
        };
        let background = DeleteParams::background();
        let at_once = api.delete_collection(&background, &ListParams::default()).await;
        if supported(at_once)?.is_none() {
            // One by one, where not all at once.
            let there = supported(api.list_metadata(&ListParams::default()).await)?;
            for object in there.into_iter().flat_map(|there| there.items) {
                supported(api.delete(&object.name_any(), &background).await)?;
            }
        }
        let left = supported(api.list_metadata(&ListParams::default()).await)?;
        let finalizers = left
            .into_iter()
            .flat_map(|left| left.items)
            .map(|item| item.metadata.finalizers.unwrap_or_default());
        Ok((finalizers.collect(), seconds))
    }
}

/// Why a pass did not get to its end.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("{0}")]
    Content(String),
}

/// Whether a namespace still has finalizers: until they are gone, it is emptied and its status is written, even if they are
/// others'.
fn is_held(namespace: &Value) -> bool {
    let finalizers = at(namespace, "spec.finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|list| !list.is_empty())
}

/// The finalizers of others on a namespace: each once, in alphabetical order.
fn without_own(namespace: &Value) -> BTreeSet<&str> {
    let finalizers = at(namespace, "spec.finalizers").and_then(Value::as_array);
    let names = finalizers.into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| *name != FINALIZER).collect()
}

/// The result of a request, or none if it does not apply: a missing kind has nothing to delete, and one without the
/// verb is asked in another way.
fn supported<T>(outcome: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match outcome {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(None),
        other => other.map(Some),
    }
}

/// The message if not all kinds could be discovered.
fn undiscovered(served: &Result<Served, kube::Error>) -> Option<String> {
    match served {
        Err(error) => Some(words(error)),
        Ok(served) if served.failed.is_empty() => None,
        Ok(served) => {
            let failed: Vec<String> = served
                .failed
                .iter()
                .map(|(version, why)| format!("{version}: {why}"))
                .collect();
            Some(format!(
                "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
                failed.len(),
                failed.join(", ")
            ))
        }
    }
}

fn is_pods(kind: &ServedKind) -> bool {
    kind.resource.group.is_empty() && kind.resource.plural == "pods"
}

/// How long a pod that is not over may take to end.
fn grace(pod: &Value) -> Option<u64> {
    let phase = at(pod, "status.phase").and_then(Value::as_str);
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    let seconds = at(pod, "spec.terminationGracePeriodSeconds").and_then(Value::as_u64);
    seconds.filter(|_| !is_over)
}

/// For how many seconds a namespace has been going.
fn time_since(namespace: &Value, now: Timestamp) -> u64 {
    let deleted: Option<Timestamp> = namespace.meta_str("deletionTimestamp").parse().ok();
    let since = deleted.map(|deleted| now.duration_since(deleted).as_secs());
    since
        .and_then(|since| u64::try_from(since).ok())
        .unwrap_or_default()
}

/// The remaining content of a namespace.
#[derive(Debug, Default)]
struct Left {
    /// Why not all kinds were found.
    undiscovered: Option<String>,
    /// How many objects there are, by `plural.group`.
    kinds: BTreeMap<String, usize>,
    /// How many of them each finalizer holds.
    finalizers: BTreeMap<String, usize>,
    /// How long they may take.
    seconds: u64,
    /// The errors.
    errors: Vec<String>,
}

/// Type, status, reason and message.
type Condition = (&'static str, &'static str, &'static str, String);

impl Left {
    /// Records the rest of a kind: the finalizers of each object, and for how many seconds they may stay (0: unknown).
    fn note(&mut self, namespace: &str, kind: &ServedKind, objects: &[Vec<String>], seconds: u64) {
        if objects.is_empty() {
            return;
        }
        let resource = &kind.resource;
        self.kinds
            .insert(format!("{}.{}", resource.plural, resource.group), objects.len());
        for finalizer in objects.iter().flatten() {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        let held = objects.iter().any(|finalizers| !finalizers.is_empty());
        if seconds > 0 {
            self.seconds = self.seconds.max(seconds);
        } else if held {
            self.seconds = self.seconds.max(FINALIZERS_SECONDS);
        } else {
            let (group, version, plural) = (&resource.group, &resource.version, &resource.plural);
            self.errors.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            ));
        }
    }

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
            match &self.undiscovered {
                None => fine(
                    DISCOVERY,
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                ),
                Some(why) => (DISCOVERY, "True", "DiscoveryFailed", why.clone()),
            },
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            if self.errors.is_empty() {
                fine(
                    "NamespaceDeletionContentFailure",
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                )
            } else {
                let mut errors = self.errors.clone();
                errors.sort();
                let text = format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    errors.len(),
                    errors.join(", ")
                );
                (
                    "NamespaceDeletionContentFailure",
                    "True",
                    "ContentDeletionFailed",
                    text,
                )
            },
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

/// The conditions as they are with the new ones: those that differ change where they are, and the time only with the status.
fn with_conditions(old: Option<&Value>, new: &[Condition], stamp: &str) -> Value {
    let mut conditions = old.and_then(Value::as_array).cloned().unwrap_or_default();
    for (kind, status, reason, message) in new {
        let mut condition = json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp,
        });
        match conditions.iter_mut().find(|condition| condition["type"] == *kind) {
            Some(found) => {
                if found["status"] == *status {
                    condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
                }
                *found = condition;
            }
            None => conditions.push(condition),
        }
    }
    Value::from(conditions)
}

#[cfg(test)]
#[path = "namespaces_tests.rs"]
mod tests;
