//! Topology spread constraints.

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::{node_matches, tolerates_all};
use machinery::selector::matches_selector;
use shared_json::{Array, Map, Value};

use super::super::cluster::{NodeInfo, PodInfo, list, text};
use super::{Cycle, Nodes, Refusal};

/// The constraints of a pod that are hard, or soft.
pub(in super::super) fn constraints(pod: &Value, hard: bool) -> impl Iterator<Item = &Value> {
    list(pod, "spec.topologySpreadConstraints")
        .iter()
        .filter(move |constraint| (text(constraint, "whenUnsatisfiable") != "ScheduleAnyway") == hard)
}

/// Whether a constraint of a pod selects pods with these labels.
pub(in super::super) fn selects(constraint: &Value, pod: &PodInfo, labels: &Map) -> bool {
    let same = list(constraint, "matchLabelKeys")
        .iter()
        .filter_map(Value::as_str)
        .all(|key| {
            let wanted: Option<&Value> = pod.labels().get(key);
            wanted.is_none() || labels.get(key) == wanted
        });
    same && matches_selector(constraint.get("labelSelector"), labels)
}

/// Whether a constraint of a pod narrows nothing down: then it counts no pod at all, as with the real one.
fn is_empty(constraint: &Value, pod: &PodInfo) -> bool {
    let none = |field: &str| {
        let part = at(constraint, field);
        part.is_none_or(|part| {
            part.as_object().is_none_or(Map::is_empty) && part.as_array().is_none_or(Array::is_empty)
        })
    };
    let mut keys = list(constraint, "matchLabelKeys")
        .iter()
        .filter_map(Value::as_str);
    none("labelSelector.matchLabels")
        && none("labelSelector.matchExpressions")
        && !keys.any(|key| pod.labels().contains_key(key))
}

/// Whether a constraint counts a pod.
pub(in super::super) fn counts(constraint: &Value, pod: &PodInfo, other: &PodInfo) -> bool {
    !is_empty(constraint, pod)
        && other.object.namespace() == pod.object.namespace()
        && !other.object.is_terminating()
        && selects(constraint, pod, other.labels())
}

/// Whether a constraint looks at a node for a pod: by default at those that the pod selects.
pub(in super::super) fn includes_node(constraint: &Value, pod: &Value, node: &NodeInfo) -> bool {
    (text(constraint, "nodeAffinityPolicy") == "Ignore" || node_matches(pod, &node.object))
        && (text(constraint, "nodeTaintsPolicy") != "Honor"
            || tolerates_all(pod, node.taints.as_slice(), &["NoSchedule", "NoExecute"]))
}

/// How many pods each value of each hard constraint's key has.
pub(super) struct State(Vec<(Value, BTreeMap<String, i64>)>);

impl State {
    pub(super) fn depends_on_pods(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn new(pod: &PodInfo, nodes: Nodes<'_>) -> Self {
        let hard: Vec<&Value> = constraints(&pod.object, true).collect();
        let keys: Vec<&str> = hard
            .iter()
            .map(|constraint| text(constraint, "topologyKey"))
            .collect();
        let mut out = Vec::new();
        for constraint in &hard {
            let key = text(constraint, "topologyKey");
            let mut values: BTreeMap<String, i64> = BTreeMap::new();
            for node in nodes.iter() {
                let eligible = keys.iter().all(|key| node.labels().contains_key(*key))
                    && includes_node(constraint, &pod.object, node);
                let Some(value) = node.label(key).filter(|_| eligible) else {
                    continue;
                };
                let count = node
                    .pods
                    .values()
                    .filter(|other| counts(constraint, pod, other))
                    .count();
                *values.entry(value.to_owned()).or_default() += i64::try_from(count).unwrap_or(i64::MAX);
            }
            out.push(((*constraint).clone(), values));
        }
        Self(out)
    }
}

pub(super) fn concerns(cycle: &Cycle<'_>) -> bool {
    cycle.spread.depends_on_pods()
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    const UNMET: &str = "node(s) didn't match pod topology spread constraints";
    for (constraint, values) in &cycle.spread.0 {
        let Some(value) = node.label(text(constraint, "topologyKey")) else {
            return Some(Refusal::hopeless(&format!("{UNMET} (missing required label)")));
        };
        let own: &Map = cycle.pod.labels();
        let own = i64::from(matches_selector(constraint.get("labelSelector"), own));
        let domains = constraint.get("minDomains").and_then(Value::as_i64).unwrap_or(1);
        let enough = i64::try_from(values.len()).unwrap_or(i64::MAX) >= domains;
        let least = if enough {
            values.values().min().copied().unwrap_or_default()
        } else {
            0
        };
        let here = values.get(value).copied().unwrap_or_default();
        let skew = constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(1);
        if here + own - least > skew {
            return Some(Refusal::resolvable(UNMET));
        }
    }
    None
}
