//! What OpenKruise fills into a pod.

use client_kit::{Names as _, Seed, SeededNames};
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::sidecars;
use crate::api::labels;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::pods::launch_priority;

/// The webhook of new pods.
pub(crate) const WEBHOOKS: &[Webhook] = &[Webhook {
    rule: Rule {
        name: "mpod.kb.io",
        path: "/mutate-pod",
        kind: WebhookKind::Mutating,
        groups: &[""],
        versions: &["v1"],
        resources: &["pods"],
        operations: &["CREATE"],
    },
    answer: |request| mutate(request).boxed(),
}];

async fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let pod = request.decoded()?;
    let mut changed = pod.clone();
    add_gate(&mut changed);
    sidecars::mutate(&mut changed, request).await?;
    // Reviews are told apart by their uid, so that names drawn from it differ.
    let names = SeededNames::new(Seed(0).fork(request.uid));
    launch_priority::inject(&mut changed, || names.suffix(""))
        .map_err(|message| Refusal::new(500, message))?;
    Ok(patch(pod, &changed))
}

/// Fills in a new pod that no set of sidecars selects: the readiness gate `KruisePodReady`, which cannot be added later, and the
/// barriers of containers that start in an order. `suffix` gives the end of the name of a pod that needs one for that.
///
/// # Errors
/// If the pod asks for an order that cannot be read.
#[cfg(test)]
pub(crate) fn mutate_pod(pod: &mut Value, suffix: impl FnOnce() -> String) -> Result<(), String> {
    add_gate(pod);
    launch_priority::inject(pod, suffix)
}

/// Gives a pod that one of OpenKruise's workloads controls its readiness gate.
fn add_gate(pod: &mut Value) {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let group = owners
        .and_then(|owners| owners.iter().find(is_controller))
        .and_then(|owner| owner.get("apiVersion")?.as_str()?.split('/').next());
    if group != Some("apps.kruise.io") {
        return;
    }
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
