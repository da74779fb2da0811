//! Where a pod had best go, of the nodes that it can go to.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cluster::{Amounts, NodeInfo, list, text};
use super::filters::{Cycle, affinity_terms, preferred_nodes, spread_constraints, tolerates};
use crate::meta::{ObjectMeta as _, at};
use crate::selector::matches_selector;

/// The largest score that one of them gives.
const SCORE_MAX: i64 = 100;
/// What a container that asks for nothing is taken to need: 0.1 cores, 200 MB (the real one's).
const CPU_LEAST: i128 = 100_000_000;
const MEMORY_LEAST: i128 = 200 * 1024 * 1024 * 1_000_000_000;

type Score = fn(&Cycle<'_>, &NodeInfo) -> i64;

/// Scores and their weights (the real defaults). Those above zero only where a pod has preferences are brought to the
/// same scale before they are weighed.
const SCORES: [(Score, i64, Scale); 5] = [
    (least_allocated, 1, Scale::Plain),
    (preferred, 2, Scale::Most),
    (taints, 3, Scale::Least),
    (spread, 2, Scale::Least),
    (beside, 2, Scale::Most),
];

/// How raw values become scores.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// They are scores.
    Plain,
    /// The largest is best.
    Most,
    /// The smallest is best.
    Least,
}

/// The best of some nodes. Among equals the one with the fewest pods, then the first by name.
pub(super) fn best(cycle: &Cycle<'_>, nodes: &[&NodeInfo]) -> Option<String> {
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for (score, weight, scale) in SCORES {
        let raw: Vec<i64> = nodes.iter().map(|node| score(cycle, node)).collect();
        let (least, most) = (raw.iter().min().copied()?, raw.iter().max().copied()?);
        for (node, value) in nodes.iter().zip(raw) {
            let value = match scale {
                Scale::Plain => value,
                _ if most == least => 0,
                Scale::Most => (value - least) * SCORE_MAX / (most - least),
                Scale::Least => (most - value) * SCORE_MAX / (most - least),
            };
            *totals.entry(node.name()).or_default() += value * weight;
        }
    }
    nodes
        .iter()
        .min_by_key(|node| {
            (
                -totals.get(node.name()).copied().unwrap_or_default(),
                node.pods.len(),
                node.name().to_owned(),
            )
        })
        .map(|node| node.name().to_owned())
}

fn asked(requests: &Amounts, name: &str, least: i128, containers: usize) -> i128 {
    requests
        .get(name)
        .copied()
        .filter(|amount| *amount > 0)
        .unwrap_or_else(|| least * i128::try_from(containers.max(1)).unwrap_or(1))
}

/// How much of the node would be left, in percent.
fn least_allocated(cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    let containers = list(&cycle.pod.object, "spec.containers").len();
    let mut scores = Vec::new();
    for (name, least) in [("cpu", CPU_LEAST), ("memory", MEMORY_LEAST)] {
        let has = node.allocatable.get(name).copied().unwrap_or_default();
        if has <= 0 {
            continue;
        }
        let on_node: i128 = node
            .pods
            .values()
            .map(|pod| asked(&pod.requests, name, least, 1))
            .sum();
        let used = on_node + asked(&cycle.pod.requests, name, least, containers);
        scores.push(((has - used).max(0) * 100 / has).try_into().unwrap_or(0_i64));
    }
    let count = i64::try_from(scores.len()).unwrap_or(1).max(1);
    scores.iter().sum::<i64>() / count
}

fn preferred(cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    preferred_nodes(&cycle.pod.object, node)
}

/// How many taints the pod would rather avoid.
fn taints(cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    let intolerable = list(&node.object, "spec.taints").iter().filter(|taint| {
        text(taint, "effect") == "PreferNoSchedule"
            && !list(&cycle.pod.object, "spec.tolerations")
                .iter()
                .any(|toleration| tolerates(toleration, taint))
    });
    i64::try_from(intolerable.count()).unwrap_or(i64::MAX)
}

/// How many pods that soft constraints count are in the node's places.
fn spread(cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    let mut total = 0;
    for constraint in spread_constraints(&cycle.pod.object, false) {
        let key = text(constraint, "topologyKey");
        let Some(value) = node.label(key) else {
            total += i64::from(u16::MAX);
            continue;
        };
        let there = cycle
            .cluster
            .nodes
            .values()
            .filter(|other| other.label(key) == Some(value))
            .flat_map(|other| other.pods.values())
            .filter(|other| {
                other.object.namespace() == cycle.pod.object.namespace()
                    && matches_selector(constraint.get("labelSelector"), other.labels())
            });
        total += i64::try_from(there.count()).unwrap_or(i64::MAX);
    }
    total
}

/// The weight of the pods that it prefers to be beside, less that of those it prefers not to be.
fn beside(cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
    let pod = &cycle.pod.object;
    let mut total = 0;
    for (kind, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
        for preference in affinity_terms(pod, kind, false) {
            let Some(term) = at(preference, "podAffinityTerm") else {
                continue;
            };
            let weight = preference.get("weight").and_then(Value::as_i64).unwrap_or(1);
            let key = text(term, "topologyKey");
            let Some(value) = node.label(key) else { continue };
            let there = cycle
                .cluster
                .nodes
                .values()
                .filter(|other| other.label(key) == Some(value))
                .flat_map(|other| other.pods.values())
                .filter(|other| {
                    other.object.namespace() == pod.namespace()
                        && matches_selector(term.get("labelSelector"), other.labels())
                });
            total += sign * weight * i64::try_from(there.count()).unwrap_or(i64::MAX / 1000);
        }
    }
    total
}
