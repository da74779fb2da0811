//! The answers to requests.

use futures::FutureExt as _;
use serde::Deserialize as _;
use serde_json::Value;

use super::conflicts::conflict;
use super::validate::{unchanged, validate};
use crate::api::v1alpha1::PodUnavailableBudget;
use crate::injection::budgets::{DELETE_GATE, UPDATE_GATE};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};
use crate::workloads::podunavailablebudget::GATES;

/// The webhook.
pub(in crate::workloads::podunavailablebudget) const VALIDATING: Webhook = Webhook {
    rule: Rule {
        name: "vpodunavailablebudget.kb.io",
        path: "/validate-policy-kruise-io-podunavailablebudget",
        kind: WebhookKind::Validating,
        groups: &["policy.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["podunavailablebudgets"],
        operations: &["CREATE", "UPDATE"],
    },
    answer: |request| answer(request).boxed(),
};

async fn answer(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let surroundings = request.surroundings;
    if !surroundings.gates.is_on(GATES) {
        let text = format!(
            "feature PodUnavailableBudget is invalid, please open via feature-gate({DELETE_GATE}, {UPDATE_GATE})"
        );
        return Err(Refusal::new(400, text));
    }
    let decoded =
        |object: &Value| PodUnavailableBudget::deserialize(object).map_err(|error| Refusal::new(400, error));
    let new = decoded(request.decoded()?)?;
    let mut errors = validate(&new);
    if let Some(old) = request.old {
        errors.extend(unchanged(&new, &decoded(old)?));
    }
    let others = surroundings.cache::<PodUnavailableBudget>().await?;
    errors.extend(conflict(&new, &others.in_namespace(request.namespace)));
    Refusal::unless_empty(400, &errors)
}
