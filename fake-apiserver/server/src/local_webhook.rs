//! Webhooks that are registered in process: no socket, the same `AdmissionReview`.

use std::sync::Arc;

use futures::future::BoxFuture;
use shared_json::Value;

use crate::resources::Resource;

/// Answers an `AdmissionReview` (`admission.k8s.io/v1`) with its response filled in. The client reaches the server
/// that asks, as the [user of the webhook](Webhook::user).
pub type WebhookHandler = Arc<dyn Fn(kube::Client, Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// Whether a webhook changes objects or only refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookKind {
    /// May answer with a JSON patch.
    Mutating,
    /// May only allow or refuse.
    Validating,
}

/// Which writes a webhook is asked about; `*` stands for any.
#[derive(Debug, Clone)]
pub struct WebhookRule {
    /// API groups; `""` is the core group.
    pub groups: Vec<String>,
    /// API versions.
    pub versions: Vec<String>,
    /// Plural names, with `/subresource` where a subresource is meant.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
}

/// A webhook of this process.
#[derive(Clone)]
pub struct Webhook {
    /// Its name, as refusals quote it.
    pub name: String,
    /// Whether it mutates or validates.
    pub kind: WebhookKind,
    /// The writes that it reviews.
    pub rules: Vec<WebhookRule>,
    /// The user that its client is; an administrator without.
    pub user: Option<String>,
    /// Its answer.
    pub handler: WebhookHandler,
}

fn covers(list: &[String], value: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == value)
}

impl Webhook {
    /// Whether it reviews this operation (`CREATE`, `UPDATE`, …) on a resource, or on a subresource of it that is not empty.
    pub(crate) fn concerns(&self, resource: &Resource, subresource: &str, operation: &str) -> bool {
        let path = if subresource.is_empty() {
            resource.plural.clone()
        } else {
            format!("{}/{subresource}", resource.plural)
        };
        self.rules.iter().any(|rule| {
            covers(&rule.groups, &resource.group)
                && covers(&rule.versions, &resource.version)
                && covers(&rule.resources, &path)
                && covers(&rule.operations, operation)
        })
    }
}
