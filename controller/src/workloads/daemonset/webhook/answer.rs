//! The answers to requests.

use futures::FutureExt as _;
use pod_rules::field_error::aggregate;
use serde_json::Value;

use super::mutate::mutate_daemon_set;
use super::validate::validate_daemon_set;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

/// The webhooks of DaemonSets.
pub(in crate::workloads::daemonset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "mdaemonset.kb.io",
            "/mutate-apps-kruise-io-daemonset",
            WebhookKind::Mutating,
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vdaemonset.kb.io",
            "/validate-apps-kruise-io-daemonset",
            WebhookKind::Validating,
        ),
        answer: |request| async { validate(request) }.boxed(),
    },
];

const fn rule(name: &'static str, path: &'static str, kind: WebhookKind) -> Rule {
    Rule {
        name,
        path,
        kind,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1", "v1beta1"],
        resources: &["daemonsets"],
        operations: &["CREATE", "UPDATE"],
    }
}

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_daemon_set(&mut changed).map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, &changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_daemon_set(request.decoded()?, request.old);
    if errors.is_empty() {
        return Ok(None);
    }
    // As the real one answers.
    let code = if request.old.is_some() { 422 } else { 500 };
    Err(Refusal::new(code, aggregate(&errors)))
}
