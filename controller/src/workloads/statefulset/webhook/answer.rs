//! The answers to requests.

use futures::FutureExt as _;
use pod_rules::field_error::aggregate;
use serde_json::Value;

use super::mutate::mutate_stateful_set;
use super::validate::validate_stateful_set;
use super::{claims, forbid};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::kit::protection;

/// The webhooks of StatefulSets.
pub(in crate::workloads::statefulset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "mstatefulset.kb.io",
            "/mutate-apps-kruise-io-statefulset",
            WebhookKind::Mutating,
            &["CREATE", "UPDATE"],
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: rule(
            "vstatefulset.kb.io",
            "/validate-apps-kruise-io-statefulset",
            WebhookKind::Validating,
            &["CREATE", "UPDATE", "DELETE"],
        ),
        answer: |request| validate(request).boxed(),
    },
];

const fn rule(
    name: &'static str,
    path: &'static str,
    kind: WebhookKind,
    operations: &'static [&'static str],
) -> Rule {
    Rule {
        name,
        path,
        kind,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1", "v1beta1"],
        resources: &["statefulsets"],
        operations,
    }
}

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_stateful_set(&mut changed, request.old, &request.surroundings.gates)
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, &changed))
}

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    if request.operation == "DELETE" {
        return protection::workload(request);
    }
    let set = request.decoded()?;
    let mut errors = validate_stateful_set(set, request.old);
    if let Some(old) = request.old
        && request.surroundings.gates.is_on("StatefulSetAutoResizePVCGate")
    {
        errors.extend(claims::update(set, old, request.surroundings.client.as_ref()).await);
    }
    if !errors.is_empty() {
        return Err(Refusal::new(422, aggregate(&errors)));
    }
    match request.old.and_then(|old| forbid::in_place_only(set, old)) {
        Some(message) => Err(Refusal::new(422, message)),
        None => Ok(None),
    }
}
