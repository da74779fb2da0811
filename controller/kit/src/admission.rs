//! An admission webhook: a rule of the installation, and a function from a request to its answer.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{SharedClock, TokioClock};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kruise_api::labels;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use pod_rules::FieldError;
use pod_rules::field_error::aggregate;
use serde_json::{Map, Value, json};

use super::caches::WebhookCaches;
use super::informer::{Cached, Informer, ObjectKey};
use super::settings::CONFIG_MAP;
use super::shared::Shared;
use crate::gates::FeatureGates;
use crate::metrics::Metrics;

/// How long a request waits for a cache. The API server waits for an answer for ten seconds.
const CACHE_TIMEOUT: Duration = Duration::from_secs(9);

/// Whether a webhook changes objects or only refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookKind {
    /// May answer with a patch.
    Mutating,
    /// May only allow or refuse.
    Validating,
}

/// Which writes a webhook of the installation is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which the server quotes in refusals.
    pub name: &'static str,
    /// Its path.
    pub path: &'static str,
    /// Whether it may change objects, or only allow or refuse them.
    pub kind: WebhookKind,
    /// API groups; the empty one is the core group.
    pub groups: &'static [&'static str],
    /// API versions.
    pub versions: &'static [&'static str],
    /// Resources.
    pub resources: &'static [&'static str],
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: &'static [&'static str],
}

impl Rule {
    /// The rule of a kind in the group `apps.kruise.io`.
    pub const fn of_apps(
        (name, path, kind): (&'static str, &'static str, WebhookKind),
        versions: &'static [&'static str],
        resources: &'static [&'static str],
        operations: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            path,
            kind,
            groups: &["apps.kruise.io"],
            versions,
            resources,
            operations,
        }
    }

    /// Whether the webhook answers at a path: at its own, and at the one that an older installation has, with the version of the kind in it.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        let is_older = |(group, rest)| {
            let after_group = self.path.strip_prefix(group);
            after_group.and_then(|path| path.strip_prefix('-')) == Some(rest)
        };
        path == self.path || path.split_once("-v1alpha1-").is_some_and(is_older)
    }

    /// The label that an object must have for the webhook to be asked: those about deletions alone protect objects that have it.
    #[must_use]
    pub fn label(&self) -> Option<&'static str> {
        (self.operations == ["DELETE"]).then_some(labels::DELETION_PROTECTION)
    }
}

/// A webhook: its rule, and its answer.
pub struct Webhook {
    /// The rule of the installation.
    pub rule: Rule,
    /// The answer.
    pub answer: Answer,
}

/// From a request to a JSON patch, to nothing where the object is allowed as it is, or to a refusal.
pub type Answer = for<'a> fn(&'a Request<'a>) -> BoxFuture<'a, Result<Option<Value>, Refusal>>;

/// The manager's side of a review: its client and caches, its gates, namespace and clock.
#[derive(Clone)]
pub struct Surroundings {
    /// A connection to the cluster. Without one, rules that need other objects are not checked.
    pub client: Option<Client>,
    /// The feature gates of the manager.
    pub gates: FeatureGates,
    /// The manager's own namespace.
    pub namespace: String,
    /// The objects that webhooks read often.
    pub caches: WebhookCaches,
    /// Where the time comes from.
    pub clock: SharedClock,
    /// Where refusals are counted.
    pub metrics: Arc<Metrics>,
    /// State that is shared with the controllers.
    pub shared: Shared,
}

impl Surroundings {
    /// The side of a manager that has no cluster: there are no other objects, and time begins in 1970.
    #[must_use]
    pub fn alone(gates: FeatureGates) -> Self {
        Self {
            client: None,
            gates,
            namespace: String::new(),
            caches: WebhookCaches::default(),
            clock: Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
            metrics: Arc::default(),
            shared: Shared::default(),
        }
    }

    /// One object, asked for at the API server. Without a cluster there are those that were put into the caches.
    ///
    /// # Errors
    /// The text of the request's error.
    pub async fn object<K: Cached + Resource<Scope = NamespaceResourceScope>>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<K>, String> {
        let Some(client) = &self.client else {
            let cache = self.caches.held::<K>();
            return Ok(cache.get(key).map(|object| K::clone(&object)));
        };
        let api: Api<K> = Api::namespaced(client.clone(), &key.namespace);
        api.get_opt(&key.name).await.map_err(|error| error.to_string())
    }

    /// A setting of the ConfigMap `kruise-configuration`, if there is one.
    ///
    /// # Errors
    /// The text of the request's error.
    pub async fn setting(&self, key: &str) -> Result<Option<String>, String> {
        let map = ObjectKey::new(&self.namespace, CONFIG_MAP);
        let map = self.object::<ConfigMap>(&map).await?;
        Ok(map.and_then(|map| map.data?.remove(key)))
    }

    /// The cache of a kind, once it has seen all objects that exist. It is empty where the API server does not serve the kind. Without a
    /// cluster there are the objects that were put there.
    ///
    /// # Errors
    /// The refusal of a request for which the cache comes too late.
    pub async fn cache<K: Cached>(&self) -> Result<Informer<K>, Refusal> {
        let Some(client) = &self.client else {
            return Ok(self.caches.held());
        };
        if !self.caches.has::<K>() && !is_served::<K>(client).await {
            return Ok(Informer::new());
        }
        let cache = self.caches.of::<K>(Api::all(client.clone()));
        match tokio::time::timeout(CACHE_TIMEOUT, cache.wait_synced()).await {
            Ok(()) => Ok(cache),
            Err(_) => {
                let plural = K::plural(&());
                Err(Refusal::new(
                    500,
                    format!("the cache of {plural} has not been filled in time"),
                ))
            }
        }
    }
}

/// Whether the API server serves a kind, as far as it says.
async fn is_served<K: Cached>(client: &Client) -> bool {
    if K::group(&()).is_empty() {
        return true;
    }
    let list = match client.list_api_group_resources(&K::api_version(&())).await {
        Ok(list) => list,
        Err(kube::Error::Api(status)) => return status.code != 404,
        Err(_) => return true,
    };
    list.resources
        .iter()
        .any(|resource| resource.name == K::plural(&()))
}

/// The request of an AdmissionReview.
pub struct Request<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operation: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The name of the object; empty where the server has yet to find one.
    pub name: &'a str,
    /// The namespace of the object; empty for one of the cluster.
    pub namespace: &'a str,
    /// The name of the user.
    pub user: &'a str,
    /// Whether the options of the request ask that nothing be written.
    pub dry_run: bool,
    /// The object as it is to be; none for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it was; none for a creation.
    pub old: Option<&'a Value>,
    /// The manager's client, gates and namespace.
    pub surroundings: &'a Surroundings,
}

impl<'a> Request<'a> {
    /// The object that the request must have.
    pub fn decoded(&self) -> Result<&'a Value, Refusal> {
        self.object
            .ok_or_else(|| Refusal::new(400, "there is no content to decode"))
    }
}

/// A refusal: an HTTP status and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its HTTP status code.
    pub code: u16,
    /// Its message, which the user reads.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code and message.
    pub fn new(code: u16, message: impl Display) -> Self {
        Self {
            code,
            message: message.to_string(),
        }
    }

    /// The answer to an object in which these errors were found: leave if there are none.
    ///
    /// # Errors
    /// The refusal that lists them, with this HTTP status.
    pub fn unless_empty(code: u16, errors: &[FieldError]) -> Result<Option<Value>, Self> {
        match errors {
            [] => Ok(None),
            errors => Err(Self::new(code, aggregate(errors))),
        }
    }
}

/// The parts of an object that a patch compares member by member.
const PARTS: [&str; 3] = ["/metadata/annotations", "/metadata/labels", "/spec"];

/// The JSON patch from one object to the other: its name, and member by member its annotations, labels and spec. None when
/// they are equal. The new values move into the patch: a pod with many sidecars is large.
pub fn patch(before: &Value, mut after: Value) -> Option<Value> {
    if *before == after {
        return None;
    }
    let mut operations = Vec::new();
    let [old, new] = [before, &after].map(|object| object.pointer("/metadata/name"));
    if old != new {
        operations.push(json!({ "op": "add", "path": "/metadata/name", "value": new }));
    }
    for part in PARTS {
        match (before.pointer(part), after.pointer_mut(part).map(Value::take)) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => members(part, old, new, &mut operations),
            (old, new) if old == new.as_ref() => {}
            (Some(_), None) => operations.push(json!({ "op": "remove", "path": part })),
            (_, new) => operations.push(operation("add", part.to_owned(), new.unwrap_or_default())),
        }
    }
    Some(Value::Array(operations))
}

fn members(part: &str, old: &Map<String, Value>, new: Map<String, Value>, operations: &mut Vec<Value>) {
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        operations.push(json!({ "op": "remove", "path": format!("{part}/{}", escape(key)) }));
    }
    for (key, value) in new {
        let op = match old.get(&key) {
            Some(before) if *before == value => continue,
            Some(_) => "replace",
            None => "add",
        };
        operations.push(operation(op, format!("{part}/{}", escape(&key)), value));
    }
}

/// An operation with a value, which moves as it is: `json!` would build it anew.
fn operation(op: &str, path: String, value: Value) -> Value {
    let mut operation = json!({ "op": op, "path": path });
    operation["value"] = value;
    operation
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
