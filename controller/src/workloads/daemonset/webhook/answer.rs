//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_daemon_set;
use super::validate::validate_daemon_set;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["daemonsets"];

/// The webhooks of DaemonSets.
pub(in crate::workloads::daemonset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mdaemonset.kb.io",
                "/mutate-apps-kruise-io-daemonset",
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
                "vdaemonset.kb.io",
                "/validate-apps-kruise-io-daemonset",
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
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_daemon_set(&mut changed).map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_daemon_set(request.decoded()?, request.old);
    // As the real one answers.
    let code = if request.old.is_some() { 422 } else { 500 };
    Refusal::unless_empty(code, &errors)
}
