//! The answers to requests.

use futures::FutureExt as _;
use pod_rules::field_error::aggregate;
use serde_json::Value;

use super::mutate::mutate_job;
use super::validate::validate_job;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

/// The webhooks of BroadcastJobs.
pub(in crate::workloads::broadcastjob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "mbroadcastjob.kb.io",
            "/mutate-apps-kruise-io-broadcastjob",
            WebhookKind::Mutating,
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vbroadcastjob.kb.io",
            "/validate-apps-kruise-io-broadcastjob",
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
        resources: &["broadcastjobs"],
        operations: &["CREATE", "UPDATE"],
    }
}

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let job = request.decoded()?;
    let mut changed = job.clone();
    mutate_job(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(job, &changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let errors = validate_job(request.decoded()?);
    match errors.is_empty() {
        true => Ok(None),
        // As the real one answers.
        false => Err(Refusal::new(500, aggregate(&errors))),
    }
}
