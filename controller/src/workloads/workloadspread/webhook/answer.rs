//! The answers to requests.

use futures::FutureExt as _;
use serde::Deserialize as _;
use serde_json::Value;

use super::{patch, strategy, subsets, target};
use crate::api::v1alpha1::WorkloadSpread;
use crate::injection::spreads::GATE;
use crate::injection::spreads::white_list::{KEY, WhiteList};
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};

/// The webhook.
pub(in crate::workloads::workloadspread) const VALIDATING: Webhook = Webhook {
    rule: Rule {
        name: "vworkloadspread.kb.io",
        path: "/validate-apps-kruise-io-v1alpha1-workloadspread",
        kind: WebhookKind::Validating,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["workloadspreads"],
        operations: &["CREATE", "UPDATE"],
    },
    answer: |request| answer(request).boxed(),
};

async fn answer(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let surroundings = request.surroundings;
    if !surroundings.gates.is_on(GATE) {
        return Err(Refusal::new(403, format!("feature-gate {GATE} is not enabled")));
    }
    let decoded =
        |object: &Value| WorkloadSpread::deserialize(object).map_err(|error| Refusal::new(400, error));
    let new = decoded(request.decoded()?)?;
    let list = surroundings.setting(KEY).await;
    let list = WhiteList::of(list.ok().flatten().as_deref());
    let mut errors = target::reference(&new, &list);
    errors.extend(subsets::subsets(&new));
    if errors.is_empty() {
        errors.extend(patch::patches(&new, request.namespace, surroundings).await);
    }
    errors.extend(strategy::strategy(&new));
    errors.extend(target::filter(&new));
    let others = surroundings.cache::<WorkloadSpread>().await?;
    errors.extend(target::conflict(&new, &others.in_namespace(request.namespace)));
    if let Some(old) = request.old {
        errors.extend(target::unchanged(&new, &decoded(old)?));
    }
    Refusal::unless_empty(400, &errors)
}
