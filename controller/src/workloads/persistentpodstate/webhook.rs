//! The webhook of PersistentPodStates, which validates.

use futures::FutureExt as _;
use kube::ResourceExt as _;
use pod_rules::FieldError;
use pod_rules::field_error::go_quote;
use serde_json::Value;

use crate::api::v1alpha1::{PersistentPodState, TargetReference};
use crate::injection::pod_states::permits;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};
use crate::targets::is_same;

/// The webhooks of PersistentPodStates.
pub(super) const WEBHOOKS: &[Webhook] = &[Webhook {
    rule: Rule {
        name: "vpersistentpodstate.kb.io",
        path: "/validate-apps-kruise-io-persistentpodstate",
        kind: WebhookKind::Validating,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["persistentpodstates"],
        operations: &["CREATE", "UPDATE"],
    },
    answer: |request| validate(request).boxed(),
}];

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let decoded = |object: &Value| -> Result<PersistentPodState, Refusal> {
        serde_json::from_value(object.clone()).map_err(|error| Refusal::new(400, error))
    };
    let new = decoded(request.decoded()?)?;
    let old = request.old.map(decoded).transpose()?;
    let permitted = permits(request.surroundings, &new.spec.target_ref).await?;
    let mut errors = errors(&new, old.as_ref(), permitted);
    let others = request.surroundings.cache::<PersistentPodState>().await?.all();
    let conflict = others.iter().find(|other| is_in_conflict(&new, other));
    errors.extend(conflict.map(|other| {
        let name = other.name_any();
        let detail = format!("targetReference is in conflict with other PersistentPodState {name}");
        FieldError::invalid_shown("spec.targetReference", shown(&new.spec.target_ref), detail)
    }));
    Refusal::unless_empty(400, &errors)
}

/// Everything that is wrong with `new` itself, whose kind of workload is `permitted` or not. Texts and their order are those of OpenKruise.
fn errors(new: &PersistentPodState, old: Option<&PersistentPodState>, permitted: bool) -> Vec<FieldError> {
    let (spec, path) = (&new.spec, "spec.TargetReference");
    let reference = &spec.target_ref;
    let mut errors = Vec::new();
    if [&reference.api_version, &reference.kind, &reference.name]
        .iter()
        .any(|text| text.is_empty())
    {
        let detail = "empty TargetReference is not valid for PersistentPodState.";
        errors.push(FieldError::invalid_shown(path, shown(reference), detail));
    }
    if !permitted {
        let detail = "TargetReference.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList";
        errors.push(FieldError::invalid_shown(path, shown(reference), detail));
    }
    if spec.required_persistent_topology.is_none()
        && spec
            .preferred_persistent_topology
            .iter()
            .flatten()
            .next()
            .is_none()
    {
        let detail = "TopologyConstraint and TopologyPreference cannot be empty at the same time";
        errors.push(FieldError::invalid_shown("spec", shown(reference), detail));
    }
    if old.is_some_and(|old| old.spec.target_ref != *reference) {
        errors.push(FieldError::required(
            "spec.targetRef",
            "targetRef cannot be modified",
        ));
    }
    errors
}

/// Whether another one records the same set.
fn is_in_conflict(new: &PersistentPodState, other: &PersistentPodState) -> bool {
    other.namespace() == new.namespace()
        && other.name_any() != new.name_any()
        && is_same(&new.spec.target_ref, &other.spec.target_ref)
}

/// A reference as Go's `%#v` prints it.
fn shown(reference: &TargetReference) -> String {
    let TargetReference {
        api_version,
        kind,
        name,
    } = reference;
    let [api_version, kind, name] = [api_version, kind, name].map(|text| go_quote(text));
    format!("v1alpha1.TargetReference{{APIVersion:{api_version}, Kind:{kind}, Name:{name}}}")
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
