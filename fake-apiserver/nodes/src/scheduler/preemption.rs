//! Preemption: the pods that a pod of higher priority may evict.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at};
use machinery::selector::matches_selector;
use shared_json::Value;

use super::cluster::{NodeInfo, PodInfo, text};
use super::filters::{Cycle, Refusal};

/// The amount that each victim adds to a node's cost, so that few important victims beat many less important ones
/// (the real one's).
const EACH: i64 = 1 << 31;

/// A node and the pods that would have to leave it, the most important first.
#[derive(Debug, Clone)]
pub(super) struct Victims {
    pub node: String,
    pub pods: Vec<Arc<PodInfo>>,
    /// How many of them leave though a budget does not allow it.
    broken: usize,
}

/// The more important ones first; of equal ones those that have run longest.
fn by_importance(one: &Arc<PodInfo>, other: &Arc<PodInfo>) -> Ordering {
    let started = |pod: &Arc<PodInfo>| text(&pod.object, "status.startTime").to_owned();
    other
        .priority
        .cmp(&one.priority)
        .then_with(|| started(one).cmp(&started(other)))
        .then_with(|| one.object.name().cmp(other.object.name()))
}

/// The pods that a budget does not allow to leave, and the others. The budgets are used up in the order of the pods.
fn by_budgets(cycle: &Cycle<'_>, pods: Vec<Arc<PodInfo>>) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    let budgets = &cycle.cluster.budgets;
    let mut left: BTreeMap<&(String, String), i64> = BTreeMap::new();
    pods.into_iter().partition(|pod| {
        let mut broken = false;
        for (key, budget) in budgets
            .iter()
            .filter(|((namespace, _), _)| namespace == pod.object.namespace())
        {
            let selector = at(budget, "spec.selector").filter(|selector| {
                ["matchLabels", "matchExpressions"].iter().any(|part| {
                    let part = selector.get(part);
                    part.is_some_and(|part| {
                        part.as_object().is_some_and(|part| !part.is_empty())
                            || part.as_array().is_some_and(|part| !part.is_empty())
                    })
                })
            });
            let gone = at(budget, "status.disruptedPods").and_then(Value::as_object);
            if pod.labels().is_empty()
                || selector.is_none()
                || !matches_selector(selector, pod.labels())
                || gone.is_some_and(|gone| gone.contains_key(pod.object.name()))
            {
                continue;
            }
            let allowed = left.entry(key).or_insert_with(|| {
                at(budget, "status.disruptionsAllowed")
                    .and_then(Value::as_i64)
                    .unwrap_or_default()
            });
            *allowed -= 1;
            broken |= *allowed < 0;
        }
        broken
    })
}

/// The victims on one node: as few as will do, those that no budget protects and the least important ones first. Otherwise
/// why it does not help.
fn on_node(cycle: &Cycle<'_>, node: &NodeInfo) -> Result<Victims, Refusal> {
    let mut lower: Vec<Arc<PodInfo>> = node
        .pods
        .values()
        .filter(|other| other.priority < cycle.pod.priority)
        .cloned()
        .collect();
    if lower.is_empty() {
        return Err(Refusal::hopeless("No preemption victims found for incoming pod"));
    }
    let mut without = node.clone();
    for pod in &lower {
        without.remove(pod.object.uid());
    }
    if let Some(refusal) = cycle.refuse_if(&without) {
        return Err(refusal);
    }
    lower.sort_by(by_importance);
    let (protected, others) = by_budgets(cycle, lower);
    let (mut pods, mut broken) = (Vec::new(), 0);
    for (group, is_protected) in [(protected, true), (others, false)] {
        for pod in group {
            without.add(Arc::clone(&pod));
            if cycle.refuse_if(&without).is_some() {
                without.remove(pod.object.uid());
                broken += usize::from(is_protected);
                pods.push(pod);
            }
        }
    }
    pods.sort_by(by_importance);
    Ok(Victims {
        node: node.name().to_owned(),
        pods,
        broken,
    })
}

/// The node whose victims matter least: the fewest budgets broken, the lowest of the highest priorities, the smallest sum of
/// priorities, the fewest, those whose most important ones have begun last. Otherwise why each node does not help.
pub(super) fn find(cycle: &Cycle<'_>, refusals: &[(&NodeInfo, Refusal)]) -> Result<Victims, Vec<Refusal>> {
    let (mut found, mut vain) = (Vec::new(), Vec::new());
    for (node, refusal) in refusals {
        if !refusal.resolvable {
            vain.push(Refusal::hopeless("Preemption is not helpful for scheduling"));
            continue;
        }
        match on_node(cycle, node) {
            Ok(victims) if victims.pods.is_empty() => {}
            Ok(victims) => found.push(victims),
            Err(refusal) => vain.push(refusal),
        }
    }
    let best = found.into_iter().min_by_key(|victims| {
        let highest = victims.pods.first().map_or(i64::MIN, |pod| pod.priority);
        let sum: i64 = victims.pods.iter().map(|pod| pod.priority + EACH).sum();
        let began = victims
            .pods
            .iter()
            .filter(|pod| pod.priority == highest)
            .map(|pod| text(&pod.object, "status.startTime").to_owned())
            .min();
        (
            victims.broken,
            highest,
            sum,
            victims.pods.len(),
            Reverse(began),
            victims.node.clone(),
        )
    });
    best.ok_or(vain)
}

/// Whether victims of the pod are still leaving.
pub(super) fn is_waiting(cycle: &Cycle<'_>, refusals: &[(&NodeInfo, Refusal)]) -> bool {
    let Some(nominated) = cycle.cluster.nominated_node(cycle.pod) else {
        return false;
    };
    let there = refusals.iter().find(|(node, _)| node.name() == nominated);
    there.is_some_and(|(node, refusal)| {
        refusal.resolvable
            && node
                .pods
                .values()
                .any(|other| other.priority < cycle.pod.priority && other.driven_away)
    })
}

#[cfg(test)]
mod tests {
    use shared_json::{Value, json};

    use super::super::cluster::Cluster;
    use super::*;

    fn pod(name: &str, priority: i64, cpu: &str) -> Value {
        json!({
            "metadata": {"uid": name, "name": name},
            "spec": {"priority": priority, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        })
    }

    fn victims(on_nodes: &[(&str, Value)], incoming: Value) -> Option<String> {
        let mut cluster = Cluster::default();
        for name in ["a", "b"] {
            cluster.put_node(
                json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "2", "pods": "10"}}}),
            );
        }
        for (node, pod) in on_nodes {
            let mut info = PodInfo::new(pod.clone());
            info.priority = pod["spec"]["priority"].as_i64().unwrap_or_default();
            cluster.place(Arc::new(info), node);
        }
        let incoming = Arc::new(PodInfo::new(incoming));
        let cycle = Cycle::new(&incoming, &cluster).ok()?;
        let refusals: Vec<(&NodeInfo, Refusal)> = cluster
            .nodes
            .values()
            .filter_map(|node| Some((node, cycle.refuse(node)?)))
            .collect();
        let found = find(&cycle, &refusals).ok()?;
        let names: Vec<&str> = found.pods.iter().map(|pod| pod.object.name()).collect();
        Some(format!("{}: {}", found.node, names.join(" ")))
    }

    #[test]
    fn the_least_important_go() {
        let full = [("a", pod("x", 5, "2")), ("b", pod("y", 3, "2"))];
        assert_eq!(victims(&full, pod("p", 10, "1")), Some("b: y".to_owned()));
        assert_eq!(victims(&full, pod("p", 4, "1")), Some("b: y".to_owned()));
        assert_eq!(victims(&full, pod("p", 3, "1")), None);
        assert_eq!(victims(&full, pod("p", 10, "3")), None);
        let two = [
            ("a", pod("x", 1, "1")),
            ("a", pod("y", 2, "1")),
            ("b", pod("z", 9, "2")),
        ];
        assert_eq!(victims(&two, pod("p", 8, "1")), Some("a: x".to_owned()));
        assert_eq!(victims(&two, pod("p", 8, "2")), Some("a: y x".to_owned()));
    }
}
