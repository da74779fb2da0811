//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_job;
use super::validate::validate_job;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["broadcastjobs"];

/// The webhooks of BroadcastJobs.
pub(in crate::workloads::broadcastjob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mbroadcastjob.kb.io",
                "/mutate-apps-kruise-io-broadcastjob",
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
                "vbroadcastjob.kb.io",
                "/validate-apps-kruise-io-broadcastjob",
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
    mutate_job(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(job, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_job(request.decoded()?);
    // As the real one answers.
    Refusal::unless_empty(500, &errors)
}
