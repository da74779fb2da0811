//! Whom a pod of higher priority may drive away.

use std::sync::Arc;

use super::cluster::{NodeInfo, PodInfo, text};
use super::filters::{Cycle, Refusal};
use crate::meta::ObjectMeta as _;

/// A node and the pods that would have to leave it.
#[derive(Debug, Clone)]
pub(super) struct Victims {
    pub node: String,
    pub pods: Vec<Arc<PodInfo>>,
}

/// The victims on one node: as few as will do, those of the lowest priority and the youngest first.
fn on_node(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Victims> {
    let mut lower: Vec<Arc<PodInfo>> = node
        .pods
        .values()
        .filter(|other| other.priority < cycle.pod.priority)
        .cloned()
        .collect();
    if lower.is_empty() {
        return None;
    }
    let mut without = node.clone();
    for pod in &lower {
        without.remove(pod.object.uid());
    }
    if cycle.refuse(&without).is_some() {
        return None;
    }
    // The more important ones, and of equal ones those that have run longest, are kept if that is possible.
    lower.sort_by(|one, other| {
        other
            .priority
            .cmp(&one.priority)
            .then_with(|| text(&one.object, "status.startTime").cmp(text(&other.object, "status.startTime")))
            .then_with(|| one.object.name().cmp(other.object.name()))
    });
    let mut pods = Vec::new();
    for pod in lower {
        without.add(Arc::clone(&pod));
        if cycle.refuse(&without).is_some() {
            without.remove(pod.object.uid());
            pods.push(pod);
        }
    }
    Some(Victims {
        node: node.name().to_owned(),
        pods,
    })
}

/// The node whose victims matter least: the lowest of the highest priorities, the smallest sum, the fewest, the youngest.
pub(super) fn find(cycle: &Cycle<'_>, refusals: &[(&NodeInfo, Refusal)]) -> Option<Victims> {
    refusals
        .iter()
        .filter(|(_, refusal)| refusal.resolvable)
        .filter_map(|(node, _)| on_node(cycle, node))
        .min_by_key(|victims| {
            let highest = victims
                .pods
                .iter()
                .map(|pod| pod.priority)
                .max()
                .unwrap_or(i64::MIN);
            let sum: i64 = victims.pods.iter().map(|pod| pod.priority).sum();
            (highest, sum, victims.pods.len(), victims.node.clone())
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            let mut info = PodInfo::placed(pod);
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
        let found = find(&cycle, &refusals)?;
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
