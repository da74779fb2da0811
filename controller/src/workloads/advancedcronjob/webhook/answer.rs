//! The answers to requests.

use futures::FutureExt as _;
use pod_rules::field_error::aggregate;
use serde_json::Value;

use super::mutate::mutate_cron;
use super::validate::validate_cron;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

/// The webhooks of AdvancedCronJobs.
pub(in crate::workloads::advancedcronjob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "madvancedcronjob.kb.io",
            "/mutate-apps-kruise-io-advancedcronjob",
            WebhookKind::Mutating,
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vadvancedcronjob.kb.io",
            "/validate-apps-kruise-io-advancedcronjob",
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
        resources: &["advancedcronjobs"],
        operations: &["CREATE", "UPDATE"],
    }
}

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let cron = request.decoded()?;
    let mut changed = cron.clone();
    mutate_cron(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(cron, &changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_cron(request.decoded()?, request.old);
    match errors.is_empty() {
        true => Ok(None),
        false => Err(Refusal::new(422, aggregate(&errors))),
    }
}
