//! Admission webhooks: those registered in this process ([`crate::local_webhook`]), and those that configurations in the store name
//! ([`configuration`]), which are called over HTTPS ([`crate::webhook_client`]).
//!
//! [`conditions`] are the match conditions of a write, [`review`] builds the question, [`verdict`] applies the answer.

mod conditions;
mod configuration;
mod review;
mod verdict;

use shared_json::Value;

use super::Attributes;
use crate::local_webhook::{Webhook, WebhookKind};
use crate::server::Server;
use crate::webhook_client::post;
use configuration::{Concern, Configured};
use machinery::status::ApiError;
use verdict::Verdict;

/// Whether a webhook, in this process or configured, is to be asked about a write.
pub(super) fn concerns(server: &Server, attributes: &Attributes) -> bool {
    let state = &server.state;
    state.webhooks.iter().any(|webhook| reviews(webhook, attributes))
        || configuration::any(state, WebhookKind::Mutating)
        || configuration::any(state, WebhookKind::Validating)
}

fn reviews(webhook: &Webhook, attributes: &Attributes) -> bool {
    webhook.concerns(
        &attributes.resource,
        &attributes.subresource,
        attributes.operation.as_str(),
    )
}

/// Asks every webhook of one kind that is concerned: first those of this process, then the configured ones, in order.
pub(super) async fn call(
    server: &Server,
    attributes: &mut Attributes,
    kind: WebhookKind,
) -> Result<(), ApiError> {
    for webhook in &server.state.webhooks {
        if webhook.kind != kind || !reviews(webhook, attributes) {
            continue;
        }
        let asked = review::of(server, attributes, &Concern::direct(attributes));
        let client = server.handle_of(webhook.user.as_deref()).client();
        let answer = (webhook.handler)(client, asked.body.clone()).await;
        let verdict = Verdict::read(&webhook.name, &answer, &attributes.warnings)?;
        let concern = Concern::direct(attributes);
        verdict.settle(&server.state, attributes, kind, &concern).await?;
    }
    let configured = configuration::all(&server.state, kind);
    if configured.is_empty() {
        return Ok(());
    }
    if kind == WebhookKind::Validating {
        return validate(server, attributes, &configured).await;
    }
    let mut passes = Passes::default();
    for (index, webhook) in configured.iter().enumerate() {
        let before = passes.before(kind, attributes);
        ask(server, attributes, kind, webhook).await?;
        passes.after(index, webhook, before, attributes);
    }
    for index in passes.again() {
        ask(server, attributes, kind, &configured[index]).await?;
    }
    Ok(())
}

/// Asks the validating webhooks that are concerned. Which of them are is known before any is asked.
async fn validate(
    server: &Server,
    attributes: &mut Attributes,
    configured: &[Configured],
) -> Result<(), ApiError> {
    let mut concerned = Vec::new();
    for webhook in configured {
        if let Some(concern) = webhook.concern(server, attributes).await? {
            concerned.push((webhook, concern));
        }
    }
    for (webhook, concern) in concerned {
        ask_about(server, attributes, WebhookKind::Validating, webhook, &concern).await?;
    }
    Ok(())
}

/// Which mutating webhooks are to be asked once more: those that want it, if a later one has changed the object.
#[derive(Default)]
struct Passes {
    wanting: Vec<usize>,
    again: Vec<usize>,
}

impl Passes {
    fn before(&self, kind: WebhookKind, attributes: &Attributes) -> Option<Value> {
        (kind == WebhookKind::Mutating).then(|| attributes.object.clone().unwrap_or_default())
    }

    fn after(&mut self, index: usize, webhook: &Configured, before: Option<Value>, attributes: &Attributes) {
        let Some(before) = before else { return };
        if attributes.object.as_ref().is_some_and(|object| *object != before) {
            self.again.append(&mut self.wanting);
        }
        if webhook.reinvoke_if_needed {
            self.wanting.push(index);
        }
    }

    fn again(self) -> Vec<usize> {
        self.again
    }
}

/// Asks one configured webhook, if it is concerned.
async fn ask(
    server: &Server,
    attributes: &mut Attributes,
    kind: WebhookKind,
    webhook: &Configured,
) -> Result<(), ApiError> {
    match webhook.concern(server, attributes).await? {
        Some(concern) => ask_about(server, attributes, kind, webhook, &concern).await,
        None => Ok(()),
    }
}

async fn ask_about(
    server: &Server,
    attributes: &mut Attributes,
    kind: WebhookKind,
    webhook: &Configured,
    concern: &Concern,
) -> Result<(), ApiError> {
    let name = &webhook.name;
    if attributes.dry_run && webhook.has_side_effects {
        let message = format!("admission webhook {name:?} does not support dry run");
        return Err(ApiError::bad_request(message));
    }
    let asked = review::of(server, attributes, concern);
    let answered = match post(
        &server.state.store,
        server.state.network(),
        &server.state.webhook_connections,
        &webhook.client,
        &asked.body,
        webhook.timeout,
    )
    .await
    {
        Ok(answer) => Verdict::read_review(webhook, kind, &answer, &asked, &attributes.warnings),
        Err(failure) => Err(format!("failed to call webhook: {failure}")),
    };
    match answered {
        Ok(verdict) => verdict?.settle(&server.state, attributes, kind, concern).await,
        Err(failure) if webhook.ignore_failure => {
            tracing::debug!(webhook = %name, %failure, "pass over a webhook");
            Ok(())
        }
        Err(failure) => Err(ApiError::internal(format!(
            "failed calling webhook {name:?}: {failure}"
        ))),
    }
}
