//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_stateful_set;
use super::validate::validate_stateful_set;
use super::{claims, forbid};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::kit::protection;

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["statefulsets"];

/// The webhooks of StatefulSets.
pub(in crate::workloads::statefulset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mstatefulset.kb.io",
                "/mutate-apps-kruise-io-statefulset",
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
                "vstatefulset.kb.io",
                "/validate-apps-kruise-io-statefulset",
                WebhookKind::Validating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE", "DELETE"],
        ),
        answer: |request| validate(request).boxed(),
    },
];

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_stateful_set(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, changed))
}

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    if request.operation == "DELETE" {
        return protection::workload(request);
    }
    let set = request.decoded()?;
    Refusal::unless_empty(422, &validate_stateful_set(set, request.old))?;
    if let Some(old) = request.old
        && request.surroundings.gates.is_on("StatefulSetAutoResizePVCGate")
    {
        let error = claims::update(set, old, request.surroundings.client.as_ref()).await;
        Refusal::unless_empty(422, error.as_slice())?;
    }
    match request.old.and_then(|old| forbid::in_place_only(set, old)) {
        Some(message) => Err(Refusal::new(422, message)),
        None => Ok(None),
    }
}
