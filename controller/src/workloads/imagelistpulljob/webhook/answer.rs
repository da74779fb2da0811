//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::validate::validate_list;
use crate::images::{defaults, gate_error};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["imagelistpulljobs"];

/// The webhooks of ImageListPullJobs.
pub(in crate::workloads::imagelistpulljob) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mimagelistpulljob-v1beta1.kb.io",
                "/mutate-apps-kruise-io-imagelistpulljob",
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
                "vimagelistpulljob-v1beta1.kb.io",
                "/validate-apps-kruise-io-imagelistpulljob",
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
    let list = request.decoded()?;
    let mut changed = list.clone();
    defaults::fill(&mut changed, false).map_err(|message| Refusal::new(400, message))?;
    Ok(patch(list, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let list = request.decoded()?;
    if let Some(error) = gate_error(&request.surroundings.gates) {
        return Err(Refusal::new(403, error));
    }
    match validate_list(list) {
        Some(error) => Err(Refusal::new(400, error)),
        None => Ok(None),
    }
}
