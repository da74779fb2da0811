//! Volumes: claims must be bound, or wait for the pod, and their volumes must be reachable from the node.

use std::collections::BTreeSet;

use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::placement::{term_matches, volume_fits};
use machinery::types::Quantity;
use shared_json::Value;

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::{Cycle, Filter, Nodes, Refusal};

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

/// Those of them that the pod names.
fn named(pod: &Value) -> impl Iterator<Item = &str> {
    let names = list(pod, "spec.volumes").iter();
    names
        .map(|volume| text(volume, "persistentVolumeClaim.claimName"))
        .filter(|name| !name.is_empty())
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

/// The problem of a pod's claims that no node can help, and its filter.
pub(super) fn check(pod: &PodInfo, cluster: &Cluster) -> Result<(), (Filter, String)> {
    let mut unbound = false;
    for name in &pod.claims {
        let Some(claim) = claim(cluster, &pod.object, name) else {
            return Err(if named(&pod.object).any(|named| named == name) {
                let why = format!("persistentvolumeclaim \"{name}\" not found");
                (Filter::VolumeInUse, why)
            } else {
                let why = format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                );
                (Filter::VolumeBinding, why)
            });
        };
        if text(claim, "status.phase") == "Lost" {
            let volume = text(claim, "spec.volumeName");
            let why = format!(
                "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
            );
            return Err((Filter::VolumeBinding, why));
        }
        if claim.is_terminating() {
            let why = format!("persistentvolumeclaim \"{name}\" is being deleted");
            return Err((Filter::VolumeBinding, why));
        }
        // One that names its volume does not wait for a pod, whatever its class says.
        let is_named = !text(claim, "spec.volumeName").is_empty();
        unbound |= !is_bound(claim) && (is_named || !waits_for_consumer(cluster, claim));
    }
    if unbound {
        let why = "pod has unbound immediate PersistentVolumeClaims".to_owned();
        return Err((Filter::VolumeBinding, why));
    }
    for name in named(&pod.object) {
        let claim = claim(cluster, &pod.object, name).filter(|claim| is_bound(claim));
        let volume = claim
            .map(|claim| text(claim, "spec.volumeName"))
            .unwrap_or_default();
        if !volume.is_empty() && !cluster.volumes.contains_key(volume) {
            let why = format!("persistentvolume \"{volume}\" not found");
            return Err((Filter::VolumeZone, why));
        }
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

/// How many pods use those of a pod's claims that only one may use.
pub(super) struct State {
    others: usize,
    exclusive: bool,
}

impl State {
    pub(super) fn depends_on_pods(&self) -> bool {
        self.exclusive
    }

    pub(super) fn new(pod: &PodInfo, nodes: Nodes<'_>) -> Self {
        let exclusive: Vec<&String> = pod
            .claims
            .iter()
            .filter(|name| {
                let claim = claim(nodes.cluster, &pod.object, name);
                claim.is_some_and(|claim| list(claim, "spec.accessModes").iter().any(|mode| mode == ONE_POD))
            })
            .collect();
        let others = if exclusive.is_empty() {
            0
        } else {
            let pods = nodes.iter().flat_map(|node| node.pods.values());
            pods.filter(|other| other.object.namespace() == pod.object.namespace())
                .filter(|other| exclusive.iter().any(|name| other.claims.contains(name)))
                .count()
        };
        Self {
            others,
            exclusive: !exclusive.is_empty(),
        }
    }
}

pub(super) fn concern(cycle: &Cycle<'_>) -> bool {
    !cycle.pod.claims.is_empty()
}

const ONE_POD: &str = "ReadWriteOncePod";

/// Claims that one pod has to itself.
pub(super) fn in_use(cycle: &Cycle<'_>, _node: &NodeInfo) -> Option<Refusal> {
    (cycle.claims.others > 0).then(|| {
        Refusal::resolvable(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        )
    })
}

/// The volumes of drivers that a pod uses: driver and the volume's own name.
fn attached<'a>(cluster: &'a Cluster, pod: &'a PodInfo) -> impl Iterator<Item = (&'a str, &'a str)> {
    pod.claims.iter().filter_map(|name| {
        let claim = claim(cluster, &pod.object, name)?;
        let volume = cluster.volumes.get(text(claim, "spec.volumeName"))?;
        let driver = text(volume, "spec.csi.driver");
        (!driver.is_empty()).then(|| (driver, text(volume, "spec.csi.volumeHandle")))
    })
}

/// How many volumes of a driver a node takes, as its CSINode says.
pub(super) fn limits(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let cluster = cycle.cluster;
    let drivers = list(cluster.drivers.get(node.name())?, "spec.drivers");
    let mut new: BTreeSet<(&str, &str)> = attached(cluster, cycle.pod).collect();
    if new.is_empty() {
        return None;
    }
    let old: BTreeSet<(&str, &str)> = node
        .pods
        .values()
        .flat_map(|other| attached(cluster, other))
        .collect();
    new.retain(|volume| !old.contains(volume));
    let of = |volumes: &BTreeSet<(&str, &str)>, name: &str| {
        let count = volumes.iter().filter(|(driver, _)| *driver == name).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    let exceeds = |driver: &Value| {
        let name = text(driver, "name");
        let most = at(driver, "allocatable.count").and_then(Value::as_i64);
        let more = of(&new, name);
        more > 0 && most.is_some_and(|most| of(&old, name) + more > most)
    };
    drivers
        .iter()
        .any(exceeds)
        .then(|| Refusal::resolvable("node(s) exceed max volume count"))
}

/// Topology labels of volumes and nodes, and the present names of the older ones.
pub(in super::super) const PLACES: [(&str, &str); 4] = [
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// The places that a label names, several as `a__b`; none if one of them has no name: such a label says nothing.
fn places(label: &str) -> Option<BTreeSet<&str>> {
    let places: BTreeSet<&str> = label.split("__").map(str::trim).collect();
    (!places.contains("")).then_some(places)
}

/// Volumes whose labels say in which zone or region they are. Those of claims that were made for the pod are not looked at.
pub(super) fn zone(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    if !PLACES.iter().any(|(key, _)| node.label(key).is_some()) {
        return None;
    }
    let volumes = named(&cycle.pod.object).filter_map(|name| {
        let claim = claim(cycle.cluster, &cycle.pod.object, name)?;
        cycle.cluster.volumes.get(text(claim, "spec.volumeName"))
    });
    let elsewhere = |volume: &Value| {
        let labels = string_map(volume, "labels");
        PLACES.iter().any(|(key, today)| {
            let Some(places) = labels.get(*key).and_then(Value::as_str).and_then(places) else {
                return false;
            };
            let here = node.label(key).or_else(|| node.label(today));
            here.is_none_or(|here| !places.contains(here))
        })
    };
    volumes
        .into_iter()
        .any(elsewhere)
        .then(|| Refusal::hopeless("node(s) had no available volume zone"))
}

/// Whether a node is among those where a class makes volumes.
fn makes_volumes(class: Option<&Value>, node: &NodeInfo) -> bool {
    let provisioner = class.map(|class| text(class, "provisioner")).unwrap_or_default();
    if provisioner.is_empty() || provisioner == "kubernetes.io/no-provisioner" {
        return false;
    }
    let terms = class
        .map(|class| list(class, "allowedTopologies"))
        .unwrap_or_default();
    terms.is_empty()
        || terms.iter().any(|term| {
            list(term, "matchLabelExpressions").iter().all(|one| {
                let here = node.label(text(one, "key"));
                here.is_some_and(|here| list(one, "values").iter().any(|value| value == here))
            })
        })
}

/// Bound claims must have their volumes within reach; the others, the smallest first, find one each, or have one made.
pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let cluster = cycle.cluster;
    let (mut out_of_reach, mut none_found, mut gone) = (false, false, false);
    let mut unbound = Vec::new();
    for name in &cycle.pod.claims {
        let claim = claim(cluster, &cycle.pod.object, name)?;
        if !is_bound(claim) {
            unbound.push(claim);
            continue;
        }
        let volume = cluster.volumes.get(text(claim, "spec.volumeName"));
        gone |= volume.is_none();
        out_of_reach |= volume.is_some_and(|volume| !reaches(volume, node));
    }
    let wants = |claim: &Value| {
        at(claim, "spec.resources.requests.storage").map_or(0, |amount| Quantity::of(amount).nanos())
    };
    unbound.sort_by_key(|claim| wants(claim));
    let mut taken: Vec<&str> = Vec::new();
    for claim in unbound {
        let class = text(claim, "spec.storageClassName");
        let selected = string_map(claim, "annotations").get("volume.kubernetes.io/selected-node");
        if let Some(selected) = selected.and_then(Value::as_str) {
            none_found |= selected != node.name() || !makes_volumes(cluster.classes.get(class), node);
            continue;
        }
        let free = cluster
            .volumes
            .values()
            .filter(|volume| !taken.contains(&volume.name()))
            .filter(|volume| {
                let reserved = at(volume, "spec.claimRef").is_some_and(Value::is_object);
                reserved || text(volume, "status.phase") == "Available"
            })
            .filter(|volume| volume_fits(volume, claim) && reaches(volume, node))
            .min_by_key(|volume| {
                at(volume, "spec.capacity.storage").map_or(0, |amount| Quantity::of(amount).nanos())
            });
        match free {
            Some(volume) => taken.push(volume.name()),
            None => none_found |= !makes_volumes(cluster.classes.get(class), node),
        }
    }
    let reasons: Vec<String> = [
        (
            out_of_reach,
            "node(s) didn't match PersistentVolume's node affinity",
        ),
        (
            none_found,
            "node(s) didn't find available persistent volumes to bind",
        ),
        (
            gone,
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        ),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, reason)| reason.to_owned())
    .collect();
    (!reasons.is_empty()).then_some(Refusal {
        reasons,
        by: None,
        resolvable: false,
        is_error: false,
    })
}
