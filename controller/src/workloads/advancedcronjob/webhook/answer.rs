//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_cron;
use super::validate::validate_cron;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["advancedcronjobs"];

/// The webhooks of AdvancedCronJobs.
pub(in crate::workloads::advancedcronjob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "madvancedcronjob.kb.io",
                "/mutate-apps-kruise-io-advancedcronjob",
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
                "vadvancedcronjob.kb.io",
                "/validate-apps-kruise-io-advancedcronjob",
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
    let cron = request.decoded()?;
    let mut changed = cron.clone();
    mutate_cron(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(cron, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_cron(request.decoded()?, request.old);
    Refusal::unless_empty(422, &errors)
}
