//! The answers to requests.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::validate::{changed_secrets, validate_job};
use crate::images::{KEPT, defaults, gate_error};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["imagepulljobs"];

/// The webhooks of ImagePullJobs.
pub(in crate::workloads::imagepulljob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mimagepulljob-v1beta1.kb.io",
                "/mutate-apps-kruise-io-imagepulljob",
                WebhookKind::Mutating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE"],
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: Rule::of_apps(
            (
                "vimagepulljob-v1beta1.kb.io",
                "/validate-apps-kruise-io-imagepulljob",
                WebhookKind::Validating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE"],
        ),
        answer: |request| async { validate(request) }.boxed(),
    },
];

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let job = request.decoded()?;
    let mut changed = job.clone();
    defaults::fill(&mut changed, true).map_err(|message| Refusal::new(400, message))?;
    let mut operations = match patch(job, changed) {
        Some(Value::Array(operations)) => operations,
        _ => Vec::new(),
    };
    let is_old = job.get("apiVersion").and_then(Value::as_str) == Some("apps.kruise.io/v1alpha1");
    let finalizers = job.pointer("/metadata/finalizers").and_then(Value::as_array);
    let has_it = finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == KEPT));
    // The controller gives it to jobs of the newer version.
    if is_old && request.old.is_none() && !has_it {
        let mut finalizers = finalizers.cloned().unwrap_or_default();
        finalizers.push(json!(KEPT));
        operations.push(json!({ "op": "add", "path": "/metadata/finalizers", "value": finalizers }));
    }
    Ok((!operations.is_empty()).then_some(Value::Array(operations)))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let job = request.decoded()?;
    if let Some(error) = gate_error(&request.surroundings.gates) {
        return Err(Refusal::new(403, error));
    }
    if request.old.is_some_and(|old| changed_secrets(old, job)) {
        return Err(Refusal::new(403, "spec.pullSecrets is immutable"));
    }
    match validate_job(job) {
        Some(error) => Err(Refusal::new(400, error)),
        None => Ok(None),
    }
}
