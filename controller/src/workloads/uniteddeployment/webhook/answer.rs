//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_set;
use super::validate::validate_set;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::kit::protection;

const VERSIONS: &[&str] = &["v1alpha1"];
const RESOURCES: &[&str] = &["uniteddeployments"];

/// The webhooks of UnitedDeployments.
pub(in crate::workloads::uniteddeployment) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "muniteddeployment.kb.io",
                "/mutate-apps-kruise-io-v1alpha1-uniteddeployment",
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
                "vuniteddeployment.kb.io",
                "/validate-apps-kruise-io-v1alpha1-uniteddeployment",
                WebhookKind::Validating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE", "DELETE"],
        ),
        answer: |request| async { validate(request) }.boxed(),
    },
];

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_set(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    if request.operation == "DELETE" {
        return protection::workload(request);
    }
    let errors =
        validate_set(request.decoded()?, request.old).map_err(|message| Refusal::new(400, message))?;
    Refusal::unless_empty(422, &errors)
}
