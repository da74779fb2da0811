//! The webhook of new pods: each gets a subset.

use client_kit::Seed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::choose::{Chosen, Moving, by_ordinal, come, has_one_subset, has_ordinals};
use super::find::{replicas, spread, white_list};
use super::matched::Matched;
use super::white_list::WhiteList;
use super::{GATE, fill, room, version};
use crate::api::labels;
use crate::api::v1alpha1::WorkloadSpread;
use crate::kit::admission::{Refusal, Request};
use crate::kit::{ActError, Desk, Informer, Written, controller_of};
use crate::targets::Lookup;

/// Chooses a subset for a new pod, and fills it in.
///
/// # Errors
/// The refusal of the pod.
pub(in crate::injection) async fn place(pod: &mut Value, request: &Request<'_>) -> Result<(), Refusal> {
    let surroundings = request.surroundings;
    if !surroundings.gates.is_on(GATE) || request.dry_run || !request.subresource.is_empty() {
        return Ok(());
    }
    let spreads: Informer<WorkloadSpread> = surroundings.cache().await?;
    let spreads = spreads.in_namespace(request.namespace);
    if spreads.is_empty() {
        return Ok(());
    }
    let metadata = pod.get("metadata").cloned().unwrap_or_default();
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    let is_active = !matches!(phase, Some("Succeeded" | "Failed")) && metadata.deletion_timestamp.is_none();
    let Some(owner) = controller_of(&metadata).filter(|_| is_active) else {
        return Ok(());
    };
    let list = white_list(surroundings).await;
    if !list.knows(&owner.api_version, &owner.kind) {
        return Ok(());
    }
    let lookup = surroundings
        .client
        .clone()
        .map(|client| Lookup::shared(client, &surroundings.shared));
    let pod_labels = metadata.labels.clone().unwrap_or_default();
    let around = (request.namespace, &list, lookup.as_ref());
    let refused = |message: String| Refusal::new(500, message);
    let found = spread(&spreads, (owner, &pod_labels), around)
        .await
        .map_err(refused)?;
    let Some(spread) = found else { return Ok(()) };
    let moving = Moving {
        name: metadata.name.as_deref().unwrap_or_default(),
        version: version::of(&owner.kind, &pod_labels),
        replicas: 0,
        seed: Seed(0).fork(request.uid),
        now: surroundings.clock.now(),
    };
    let chosen = choose(spread, moving, request, (&list, lookup.as_ref())).await?;
    let Some(chosen) = chosen else { return Ok(()) };
    let subset = spread
        .spec
        .subsets
        .iter()
        .find(|subset| subset.name == chosen.subset);
    let Some(subset) = subset else { return Ok(()) };
    fill::fill(pod, subset).map_err(refused)?;
    let matched = Matched {
        name: spread.name_any(),
        subset: chosen.subset,
        uid: chosen.uid,
    };
    pod["metadata"]["annotations"][labels::MATCHED_SPREAD] = json!(matched.text());
    Ok(())
}

/// Chooses the subset of a pod, and records its choice where that is needed.
async fn choose(
    spread: &WorkloadSpread,
    pod: Moving<'_>,
    request: &Request<'_>,
    (list, lookup): (&WhiteList, Option<&Lookup>),
) -> Result<Option<Chosen>, Refusal> {
    let named = |subset: String| Chosen {
        subset,
        uid: String::new(),
    };
    if has_one_subset(spread) {
        return Ok(spread
            .spec
            .subsets
            .first()
            .map(|subset| named(subset.name.clone())));
    }
    if has_ordinals(spread) {
        return Ok(by_ordinal(spread, pod.name).map(named));
    }
    let Some(client) = &request.surroundings.client else {
        return Ok(come(spread, pod).0);
    };
    let desk = request.surroundings.shared.of::<Desk<WorkloadSpread>>();
    let api = Api::namespaced(client.clone(), request.namespace);
    let decide = |mut current: WorkloadSpread| async move {
        let replicas = match room::depends(&current) {
            true => replicas(&current, (request.namespace, list, lookup)).await,
            false => Ok(0),
        };
        let replicas = replicas.map_err(|message| ActError::planned(&message))?;
        let (chosen, status) = come(&current, Moving { replicas, ..pod });
        let changed = status.map(|status| {
            current.status = Some(status);
            current
        });
        Ok::<_, ActError>((changed, chosen))
    };
    match desk.write(&api, spread, pod.seed, decide).await {
        Ok(Written::Decided(chosen)) => Ok(chosen),
        Ok(Written::Gone) => Ok(None),
        Err(error) => Err(Refusal::new(500, error)),
    }
}

#[cfg(test)]
#[path = "creation_tests.rs"]
mod tests;
