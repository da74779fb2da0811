//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_image;
use super::validate::validate_image;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::workloads::nodeimage::GATE;

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["nodeimages"];

/// The webhooks of NodeImages.
pub(in crate::workloads::nodeimage) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mnodeimage.kb.io",
                "/mutate-apps-kruise-io-nodeimage",
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
                "vnodeimage.kb.io",
                "/validate-apps-kruise-io-nodeimage",
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
    let image = request.decoded()?;
    let mut changed = image.clone();
    mutate_image(&mut changed, request.surroundings.clock.now())
        .map_err(|message| Refusal::new(400, message))?;
    Ok(patch(image, changed))
}

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let image = request.decoded()?;
    if !request.surroundings.gates.is_on(GATE) {
        return Err(Refusal::new(403, format!("feature-gate {GATE} is not enabled")));
    }
    match validate_image(image) {
        Some(error) => Err(Refusal::new(400, error)),
        None => Ok(None),
    }
}
