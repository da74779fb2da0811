//! The claims of pods: whose they are, and how far they follow their templates.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use pod_rules::quantity::Quantity;
use serde_json::{Value, json};

use super::Action;
use super::view::View;
use crate::api::v1beta1::VolumeClaimStatus;
use crate::pods::build::{claim_name, pod_name, template_name};
use crate::pods::{CachedPod, PodAction, pod};

/// The claims of an ordinal: the template of each, its name, and the claim if it is there.
fn claims_of<'v>(
    view: &'v View<'_>,
    ordinal: i32,
) -> impl Iterator<Item = (&'v Value, String, Option<&'v PersistentVolumeClaim>)> {
    let id = ordinal.to_string();
    view.set().spec.claim_templates().iter().map(move |template| {
        let name = claim_name(&view.owner, template, &id);
        let claim = view.observed.claims.get(&name).map(AsRef::as_ref);
        (template, name, claim)
    })
}

/// Whether a claim of an ordinal is not there, or is being deleted.
pub(super) fn some_missing(view: &View<'_>, ordinal: i32) -> bool {
    claims_of(view, ordinal)
        .any(|(_, _, claim)| claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some()))
}

/// Whether claims go with their pod once its ordinal is given up.
fn goes_when_scaled(view: &View<'_>) -> bool {
    policy(view).1
}

/// Whether claims go with the set, and whether they go with their pod once its ordinal is given up. A value that is not known
/// counts as `Retain` for both.
fn policy(view: &View<'_>) -> (bool, bool) {
    let policy = view.set().spec.persistent_volume_claim_retention_policy.as_ref();
    let Some(policy) = policy.filter(|_| view.gates.auto_delete_claims) else {
        return (false, false);
    };
    let read = |value: &Option<String>| match value.as_deref() {
        None | Some("" | "Retain") => Some(false),
        Some("Delete") => Some(true),
        Some(_) => None,
    };
    match (read(&policy.when_deleted), read(&policy.when_scaled)) {
        (Some(deleted), Some(scaled)) => (deleted, scaled),
        _ => (false, false),
    }
}

/// Whether a claim of the ordinal still belongs to the pod that had the ordinal before, and goes with it.
pub(super) fn is_stale(view: &View<'_>, ordinal: i32) -> bool {
    if !goes_when_scaled(view) {
        return false;
    }
    let pod = pod_name(&view.owner, &ordinal.to_string());
    claims_of(view, ordinal).any(|(_, _, claim)| {
        let owners = claim.and_then(|claim| claim.metadata.owner_references.as_ref());
        let mut owners = owners.into_iter().flatten();
        owners.any(|owner| owner.kind == "Pod" && owner.name == pod)
    })
}

/// Gives the claims of a pod the owners with which they are to go.
pub(super) fn owners(view: &View<'_>, ordinal: i32, pod: &CachedPod, scaled_down: bool) -> Vec<PodAction> {
    if !view.gates.auto_delete_claims {
        return Vec::new();
    }
    let (when_deleted, when_scaled) = policy(view);
    let by_pod = when_scaled && scaled_down;
    let by_set = when_deleted && !by_pod;
    let mut actions = Vec::new();
    for (_, name, claim) in claims_of(view, ordinal) {
        let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
            continue;
        };
        let has = |uid: &str| {
            let owners = claim.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.uid == uid)
        };
        let set = &view.owner;
        let version = set.gvk.api_version();
        let wanted = [
            (&*set.uid, by_set, &*version, &*set.gvk.kind, &*set.key.name),
            (pod::uid(pod), by_pod, "v1", "Pod", pod::name(pod)),
        ];
        let changes: Vec<Value> = wanted
            .into_iter()
            .filter(|(uid, owns, ..)| has(uid) != *owns)
            .map(|(uid, owns, api_version, kind, name)| match owns {
                true => json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid }),
                false => json!({ "$patch": "delete", "uid": uid }),
            })
            .collect();
        if !changes.is_empty() {
            actions.push(PodAction::PatchClaim {
                claim: name,
                patch: json!({ "metadata": { "ownerReferences": changes } }),
            });
        }
    }
    actions
}

/// The part of the status that is about claims.
pub(super) fn status(view: &View<'_>) -> Vec<VolumeClaimStatus> {
    let templates = view.set().spec.claim_templates();
    let mut out: Vec<VolumeClaimStatus> = templates
        .iter()
        .map(|template| VolumeClaimStatus {
            volume_claim_name: template_name(template).to_owned(),
            ..VolumeClaimStatus::default()
        })
        .collect();
    for slot in &view.slots {
        for ((template, _, claim), counts) in claims_of(view, slot.ordinal).zip(&mut out) {
            let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
                continue;
            };
            if is_compatible(claim, template) {
                counts.compatible_replicas += 1;
                counts.compatible_ready_replicas += i32::from(is_ready(claim));
            }
        }
    }
    out
}

/// How far the claims of a pod are behind their templates, where they grow with them.
#[derive(Debug, PartialEq)]
pub(super) enum Growth {
    /// They are not.
    Done,
    /// They ask for as much as the templates, and wait for it.
    Waiting,
    /// These are to ask for more.
    Wanted(Vec<Action>),
    /// This one differs from its template in more than its size, and cannot be changed.
    Impossible(String),
}

/// How far the claims of the pod with an ordinal are behind their templates. Claims that are not there or end do not count.
pub(super) fn growth(view: &View<'_>, ordinal: i32) -> Growth {
    if !view.settings.grows_claims {
        return Growth::Done;
    }
    let mut wanted = Vec::new();
    let mut waits = false;
    for (template, name, claim) in claims_of(view, ordinal) {
        let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
            continue;
        };
        if !is_alike(claim, template) {
            return Growth::Impossible(name);
        }
        if is_compatible(claim, template) {
            waits |= !is_ready(claim) && !waits_for_its_pod(claim);
        } else {
            let class = claim
                .spec
                .as_ref()
                .and_then(|spec| spec.storage_class_name.clone());
            let resources = template.pointer("/spec/resources").cloned();
            wanted.push(Action::GrowClaim {
                claim: name,
                pod: pod_name(&view.owner, &ordinal.to_string()),
                class: class.unwrap_or_default(),
                resources: resources.unwrap_or_default(),
            });
        }
    }
    match (wanted.is_empty(), waits) {
        (false, _) => Growth::Wanted(wanted),
        (true, true) => Growth::Waiting,
        (true, false) => Growth::Done,
    }
}

/// Whether a claim of the pod with an ordinal lacks the storage that it asks for, where claims grow.
pub(super) fn some_growing(view: &View<'_>, ordinal: i32) -> bool {
    view.settings.grows_claims
        && claims_of(view, ordinal).any(|(_, _, claim)| {
            let claim = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none());
            claim.is_some_and(|claim| !is_ready(claim))
        })
}

/// Whether only the file system of the claim's volume has to grow, which it does when a pod mounts it.
fn waits_for_its_pod(claim: &PersistentVolumeClaim) -> bool {
    let conditions = claim
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "FileSystemResizePending" && condition.status == "True")
}

fn storage(value: Option<&str>) -> Option<i128> {
    Quantity::parse(value?).map(Quantity::nanos)
}

/// Whether a claim asks for at least as much as its template, of the same class and in the same ways.
fn is_compatible(claim: &PersistentVolumeClaim, template: &Value) -> bool {
    let asks = template.pointer("/spec/resources/requests/storage");
    is_alike(claim, template) && requested(claim) >= storage(asks.and_then(Value::as_str))
}

/// Whether a claim asks for storage of the same class and in the same ways as its template.
fn is_alike(claim: &PersistentVolumeClaim, template: &Value) -> bool {
    let Some(spec) = &claim.spec else { return false };
    let wanted = |pointer: &str| template.pointer(pointer);
    let class = wanted("/spec/storageClassName").and_then(Value::as_str);
    if let (Some(own), Some(wanted)) = (spec.storage_class_name.as_deref(), class)
        && own != wanted
    {
        return false;
    }
    let modes: Vec<&str> = wanted("/spec/accessModes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let own: Vec<&str> = spec.access_modes.iter().flatten().map(String::as_str).collect();
    modes == own
}

fn requested(claim: &PersistentVolumeClaim) -> Option<i128> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    storage(requests.get("storage").map(|quantity| quantity.0.as_str()))
}

/// Whether a claim has the storage that it asks for.
fn is_ready(claim: &PersistentVolumeClaim) -> bool {
    let capacity = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    let capacity = capacity.and_then(|capacity| capacity.get("storage"));
    storage(capacity.map(|quantity| quantity.0.as_str())) >= requested(claim)
}
