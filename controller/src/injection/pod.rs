//! The webhooks of pods: one fills in new ones, the others guard those that exist.
//!
//! Each step with a new pod sees the changes of those before it: the readiness gate `KruisePodReady`, which cannot be added
//! later; the subset of a spread; sidecars; the barriers of containers that start in an order, sidecars among them; the pod's budget;
//! where a pod of that name was; liveness probes that another program is to run; the probes of pods on virtual nodes.

use client_kit::{Names as _, Seed, SeededNames};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::{budgets, pod_states, probes, sidecars, spreads};
use crate::api::labels;
use crate::gates::FeatureGates;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::pods::launch_priority;

/// The feature gate with which every pod gets the readiness gate.
const ALL_PODS_GATE: &str = "KruisePodReadinessGate";

/// The webhooks of pods.
pub(crate) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: rule(
            "mpod.kb.io",
            "/mutate-pod",
            WebhookKind::Mutating,
            &["CREATE"],
            &["pods"],
        ),
        answer: |request| mutate(request).boxed(),
    },
    Webhook {
        rule: rule(
            "vpod.kb.io",
            "/validate-pod",
            WebhookKind::Validating,
            &["UPDATE", "DELETE"],
            &["pods"],
        ),
        answer: |request| guard(request).boxed(),
    },
    Webhook {
        rule: rule(
            "vpodeviction.kb.io",
            "/validate-pod",
            WebhookKind::Validating,
            &["CREATE"],
            &["pods/eviction"],
        ),
        answer: |request| guard(request).boxed(),
    },
];

const fn rule(
    name: &'static str,
    path: &'static str,
    kind: WebhookKind,
    operations: &'static [&'static str],
    resources: &'static [&'static str],
) -> Rule {
    Rule {
        name,
        path,
        kind,
        groups: &[""],
        versions: &["v1"],
        resources,
        operations,
    }
}

/// Answers a request about a pod that exists.
async fn guard(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    spreads::record(request).await?;
    budgets::guard(request).await?;
    Ok(None)
}

async fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let pod = request.decoded()?;
    let mut changed = pod.clone();
    if is_guarded(&changed, &request.surroundings.gates) {
        add_gate(&mut changed);
    }
    spreads::place(&mut changed, request).await?;
    sidecars::mutate(&mut changed, request).await?;
    // Reviews are told apart by their uid, so that names drawn from it differ.
    let names = SeededNames::new(Seed(0).fork(request.uid));
    launch_priority::inject(&mut changed, || names.suffix(""))
        .map_err(|message| Refusal::new(500, message))?;
    budgets::relate(&mut changed, request).await;
    pod_states::mutate(&mut changed, request).await?;
    if request.surroundings.gates.is_on(probes::LIVENESS_GATE) {
        probes::move_out(&mut changed);
    }
    probes::announce(&mut changed, request).await?;
    Ok(patch(pod, changed))
}

/// The group of the object that controls a pod.
pub(super) fn controller_group(pod: &Value) -> Option<&str> {
    let owners = pod
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)?;
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let owner = owners.iter().find(is_controller)?;
    owner.get("apiVersion")?.as_str()?.split('/').next()
}

/// Whether a pod gets the readiness gate: one that a workload of OpenKruise controls, or any with the feature gate for that.
fn is_guarded(pod: &Value, gates: &FeatureGates) -> bool {
    controller_group(pod) == Some("apps.kruise.io") || gates.is_on(ALL_PODS_GATE)
}

/// Gives a pod its readiness gate.
fn add_gate(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
    if gates.is_null() {
        *gates = json!([]);
    }
    if let Some(gates) = gates.as_array_mut()
        && !gates
            .iter()
            .any(|gate| gate.get("conditionType").and_then(Value::as_str) == Some(labels::KRUISE_POD_READY))
    {
        gates.push(json!({ "conditionType": labels::KRUISE_POD_READY }));
    }
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
