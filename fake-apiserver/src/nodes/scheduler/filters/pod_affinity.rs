//! Affinity and anti-affinity between pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::{Cycle, Refusal};
use crate::meta::{ObjectMeta as _, at};
use crate::selector::matches_selector;

/// The terms of a pod: of `podAffinity` or `podAntiAffinity`, required or preferred.
pub(in super::super) fn terms<'a>(pod: &'a Value, kind: &str, required: bool) -> &'a [Value] {
    let which = if required { "required" } else { "preferred" };
    list(
        pod,
        &format!("spec.affinity.{kind}.{which}DuringSchedulingIgnoredDuringExecution"),
    )
}

/// Whether a term of `pod` is about `other`.
pub(in super::super) fn is_about(term: &Value, pod: &Value, other: &PodInfo) -> bool {
    let named = list(term, "namespaces");
    let everywhere = at(term, "namespaceSelector").is_some_and(Value::is_object);
    let namespace = other.object.namespace();
    let here = if named.is_empty() && !everywhere {
        namespace == pod.namespace()
    } else {
        everywhere || named.iter().any(|name| name == namespace)
    };
    here && matches_selector(term.get("labelSelector"), other.labels())
}

/// Places as (topology key, value).
type Places = BTreeSet<(String, String)>;

/// Where the pods are that the terms of the pod, and those of others, are about.
pub(super) struct State {
    /// For each required term of affinity, where it is met.
    wanted: Vec<(Value, Places)>,
    unwanted: Places,
    /// Where pods are that do not want this one.
    forbidden: Places,
    /// Whether the pod is the first of its kind: then its own presence is enough.
    first: bool,
}

fn place(term: &Value, node: &NodeInfo) -> Option<(String, String)> {
    let key = text(term, "topologyKey");
    node.label(key).map(|value| (key.to_owned(), value.to_owned()))
}

impl State {
    pub(super) fn new(pod: &PodInfo, cluster: &Cluster) -> Self {
        let wanted = terms(&pod.object, "podAffinity", true);
        let unwanted = terms(&pod.object, "podAntiAffinity", true);
        let mut state = Self {
            wanted: wanted.iter().map(|term| (term.clone(), Places::new())).collect(),
            unwanted: Places::new(),
            forbidden: Places::new(),
            first: false,
        };
        if wanted.is_empty() && unwanted.is_empty() && cluster.repelling == 0 {
            return state;
        }
        for node in cluster.nodes.values() {
            for other in node.pods.values() {
                for (term, places) in &mut state.wanted {
                    if is_about(term, &pod.object, other) {
                        places.extend(place(term, node));
                    }
                }
                for term in unwanted.iter().filter(|term| is_about(term, &pod.object, other)) {
                    state.unwanted.extend(place(term, node));
                }
                for term in terms(&other.object, "podAntiAffinity", true) {
                    if is_about(term, &other.object, pod) {
                        state.forbidden.extend(place(term, node));
                    }
                }
            }
        }
        state.first = state.wanted.iter().all(|(_, places)| places.is_empty())
            && wanted.iter().all(|term| is_about(term, &pod.object, pod));
        state
    }
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let state = &cycle.affinity;
    let met = state
        .wanted
        .iter()
        .all(|(term, places)| place(term, node).is_some_and(|place| state.first || places.contains(&place)));
    if !met {
        return Some(Refusal::hopeless("node(s) didn't match pod affinity rules"));
    }
    let anti = terms(&cycle.pod.object, "podAntiAffinity", true);
    if anti
        .iter()
        .any(|term| place(term, node).is_some_and(|place| state.unwanted.contains(&place)))
    {
        return Some(Refusal::resolvable(
            "node(s) didn't match pod anti-affinity rules",
        ));
    }
    let here = |(key, value): &(String, String)| node.label(key) == Some(value);
    state
        .forbidden
        .iter()
        .any(here)
        .then(|| Refusal::resolvable("node(s) didn't satisfy existing pods anti-affinity rules"))
}
