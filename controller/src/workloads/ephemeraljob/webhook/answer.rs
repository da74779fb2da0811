//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::validate::{decoded, validate_job};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};

/// The webhooks of EphemeralJobs.
pub(in crate::workloads::ephemeraljob) const WEBHOOKS: &[Webhook] = &[Webhook {
    rule: Rule {
        name: "vephemeraljobs.kb.io",
        path: "/validate-apps-kruise-io-v1alpha1-ephemeraljob",
        kind: WebhookKind::Validating,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["ephemeraljobs"],
        operations: &["CREATE", "UPDATE"],
    },
    answer: |request| async { validate(request) }.boxed(),
}];

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let job = request.decoded()?;
    decoded(job).map_err(|message| Refusal::new(400, message))?;
    let errors = validate_job(job);
    Refusal::unless_empty(400, &errors)
}
