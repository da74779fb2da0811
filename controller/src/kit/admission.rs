//! An admission webhook: a rule of the installation, and a function from a request to its answer.

use std::fmt::Display;

use futures::future::BoxFuture;
use kube::Client;
use serde_json::{Value, json};

use crate::gates::FeatureGates;

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
    /// What it may do.
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

/// A webhook: its rule, and what answers.
pub struct Webhook {
    /// The rule of the installation.
    pub rule: Rule,
    /// The answer.
    pub(crate) answer: Answer,
}

/// From a request to a JSON patch, to nothing where the object is allowed as it is, or to a refusal.
pub(crate) type Answer = for<'a> fn(&'a Request<'a>) -> BoxFuture<'a, Result<Option<Value>, Refusal>>;

/// The manager's side of a review: its client, gates and namespace.
#[derive(Clone)]
pub struct Surroundings {
    /// A connection to the cluster. Without one, rules that need other objects are not checked.
    pub client: Option<Client>,
    /// The feature gates of the manager.
    pub gates: FeatureGates,
    /// The manager's own namespace.
    pub namespace: String,
}

/// The request of an AdmissionReview.
pub(crate) struct Request<'a> {
    /// Its uid.
    pub(crate) uid: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub(crate) operation: &'a str,
    /// The object as it is to be; none for a deletion.
    pub(crate) object: Option<&'a Value>,
    /// The object as it was; none for a creation.
    pub(crate) old: Option<&'a Value>,
    /// The manager's client, gates and namespace.
    pub(crate) surroundings: &'a Surroundings,
}

impl<'a> Request<'a> {
    /// The object that the request must have.
    pub(crate) fn decoded(&self) -> Result<&'a Value, Refusal> {
        self.object
            .ok_or_else(|| Refusal::new(400, "there is no content to decode"))
    }
}

/// A refusal: an HTTP status and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: u16, message: impl Display) -> Self {
        Self {
            code,
            message: message.to_string(),
        }
    }
}

/// The JSON patch from one object to the other, its name and member by member of its `spec`; none when they are equal.
pub(crate) fn patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let name = |object: &Value| object.pointer("/metadata/name").cloned();
    let mut operations = Vec::new();
    if name(before) != name(after) {
        operations.push(json!({ "op": "add", "path": "/metadata/name", "value": name(after) }));
    }
    let (Some(old), Some(new)) = (
        before.get("spec").and_then(Value::as_object),
        after.get("spec").and_then(Value::as_object),
    ) else {
        let op = if before.get("spec").is_some() {
            "replace"
        } else {
            "add"
        };
        operations.push(json!({ "op": op, "path": "/spec", "value": after.get("spec") }));
        return Some(Value::Array(operations));
    };
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        operations.push(json!({ "op": "remove", "path": format!("/spec/{}", escape(key)) }));
    }
    for (key, value) in new {
        let op = match old.get(key) {
            Some(before) if before == value => continue,
            Some(_) => "replace",
            None => "add",
        };
        operations.push(json!({ "op": op, "path": format!("/spec/{}", escape(key)), "value": value }));
    }
    Some(Value::Array(operations))
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
