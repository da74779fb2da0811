//! Volumes: claims must be bound, or wait for the pod, and their volumes must be reachable from the node.

use serde_json::Value;

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::node_affinity::term_matches;
use super::{Cycle, Refusal};
use crate::meta::{ObjectMeta as _, at, string_map};
use crate::types::Quantity;

/// The names of the claims that a pod uses.
pub(in super::super) fn claims_of(pod: &Value) -> Vec<String> {
    list(pod, "spec.volumes")
        .iter()
        .filter_map(|volume| {
            let named = text(volume, "persistentVolumeClaim.claimName");
            if !named.is_empty() {
                return Some(named.to_owned());
            }
            volume
                .get("ephemeral")
                .map(|_| format!("{}-{}", pod.name(), text(volume, "name")))
        })
        .collect()
}

fn claim<'a>(cluster: &'a Cluster, pod: &Value, name: &str) -> Option<&'a Value> {
    cluster.claims.get(&(pod.namespace().to_owned(), name.to_owned()))
}

/// Whether a claim has its volume for good.
pub(in super::super) fn is_bound(claim: &Value) -> bool {
    !text(claim, "spec.volumeName").is_empty()
        && string_map(claim, "annotations").contains_key("pv.kubernetes.io/bind-completed")
}

/// Whether a claim is bound only when a pod needs it.
pub(in super::super) fn waits_for_consumer(cluster: &Cluster, claim: &Value) -> bool {
    cluster
        .classes
        .get(text(claim, "spec.storageClassName"))
        .is_some_and(|class| text(class, "volumeBindingMode") == "WaitForFirstConsumer")
}

/// What about a pod's claims no node can help.
pub(super) fn check(pod: &PodInfo, cluster: &Cluster) -> Result<(), String> {
    let mut unbound = false;
    for name in claims_of(&pod.object) {
        let Some(claim) = claim(cluster, &pod.object, &name) else {
            return Err(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if claim.is_terminating() {
            return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        unbound |= !is_bound(claim) && !waits_for_consumer(cluster, claim);
    }
    if unbound {
        return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
    }
    Ok(())
}

fn reaches(volume: &Value, node: &NodeInfo) -> bool {
    let terms = at(volume, "spec.nodeAffinity.required").map(|required| list(required, "nodeSelectorTerms"));
    terms.is_none_or(|terms| {
        terms
            .iter()
            .any(|term| term_matches(term, node.labels(), node.name()))
    })
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let cluster = cycle.cluster;
    for name in claims_of(&cycle.pod.object) {
        let claim = claim(cluster, &cycle.pod.object, &name)?;
        if is_bound(claim) {
            let volume = cluster.volumes.get(text(claim, "spec.volumeName"));
            if volume.is_some_and(|volume| !reaches(volume, node)) {
                return Some(Refusal::hopeless(
                    "node(s) didn't match PersistentVolume's node affinity",
                ));
            }
            continue;
        }
        let class = text(claim, "spec.storageClassName");
        let provisioner = cluster
            .classes
            .get(class)
            .map(|class| text(class, "provisioner"))
            .unwrap_or_default();
        let provisions = !provisioner.is_empty() && provisioner != "kubernetes.io/no-provisioner";
        let wants =
            at(claim, "spec.resources.requests.storage").map_or(0, |amount| Quantity::of(amount).nanos());
        let found = cluster.volumes.values().any(|volume| {
            let has = at(volume, "spec.capacity.storage").map_or(0, |amount| Quantity::of(amount).nanos());
            text(volume, "spec.storageClassName") == class
                && at(volume, "spec.claimRef").is_none_or(Value::is_null)
                && has >= wants
                && reaches(volume, node)
        });
        if !provisions && !found {
            return Some(Refusal::hopeless(
                "node(s) didn't find available persistent volumes to bind",
            ));
        }
    }
    None
}
