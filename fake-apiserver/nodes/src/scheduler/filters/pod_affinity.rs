//! Affinity and anti-affinity between pods.

use std::collections::BTreeSet;

use machinery::meta::{ObjectMeta as _, at};
use machinery::selector::matches_selector;
use shared_json::Value;

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::{Cycle, Nodes, Refusal};

/// The terms of a pod: of `podAffinity` or `podAntiAffinity`, required or preferred.
pub(in super::super) fn terms<'a>(pod: &'a Value, kind: &str, required: bool) -> &'a [Value] {
    let which = if required { "required" } else { "preferred" };
    list(
        pod,
        &format!("spec.affinity.{kind}.{which}DuringSchedulingIgnoredDuringExecution"),
    )
}

/// Whether a term of `pod` is about `other`.
pub(in super::super) fn is_about(cluster: &Cluster, term: &Value, pod: &Value, other: &PodInfo) -> bool {
    let named = list(term, "namespaces");
    let selector = at(term, "namespaceSelector").filter(|selector| selector.is_object());
    let namespace = other.object.namespace();
    let here = if named.is_empty() && selector.is_none() {
        namespace == pod.namespace()
    } else {
        named.iter().any(|name| name == namespace)
            || selector.is_some_and(|selector| cluster.selects_namespace(selector, namespace))
    };
    here && matches_selector(term.get("labelSelector"), other.labels())
}

/// Places as (topology key, value).
type Places = BTreeSet<(String, String)>;

/// Where the pods are that the terms of the pod, and those of others, are about.
pub(super) struct State {
    /// For each required term of affinity, where pods are that meet all of them.
    wanted: Vec<(Value, Places)>,
    unwanted: Places,
    /// Where pods are that do not want this one.
    forbidden: Places,
    /// Whether the pod is the first of its kind: then its own presence is enough.
    first: bool,
    /// Whether any of this is about the pods that are there.
    looked: bool,
}

fn place(term: &Value, node: &NodeInfo) -> Option<(String, String)> {
    let key = text(term, "topologyKey");
    node.label(key).map(|value| (key.to_owned(), value.to_owned()))
}

impl State {
    pub(super) fn depends_on_pods(&self) -> bool {
        self.looked
    }

    pub(super) fn new(pod: &PodInfo, nodes: Nodes<'_>) -> Self {
        let cluster = nodes.cluster;
        let wanted = terms(&pod.object, "podAffinity", true);
        let unwanted = terms(&pod.object, "podAntiAffinity", true);
        let mut state = Self {
            wanted: wanted.iter().map(|term| (term.clone(), Places::new())).collect(),
            unwanted: Places::new(),
            forbidden: Places::new(),
            first: false,
            looked: false,
        };
        if wanted.is_empty() && unwanted.is_empty() && cluster.repelling == 0 {
            return state;
        }
        state.looked = true;
        for node in nodes.iter() {
            for other in node.pods.values() {
                let meets = |(term, _): &(Value, Places)| is_about(cluster, term, &pod.object, other);
                if state.wanted.iter().all(meets) {
                    for (term, places) in &mut state.wanted {
                        places.extend(place(term, node));
                    }
                }
                for term in unwanted
                    .iter()
                    .filter(|term| is_about(cluster, term, &pod.object, other))
                {
                    state.unwanted.extend(place(term, node));
                }
                for term in terms(&other.object, "podAntiAffinity", true) {
                    if is_about(cluster, term, &other.object, pod) {
                        state.forbidden.extend(place(term, node));
                    }
                }
            }
        }
        state.first = state.wanted.iter().all(|(_, places)| places.is_empty())
            && wanted
                .iter()
                .all(|term| is_about(cluster, term, &pod.object, pod));
        state
    }
}

pub(super) fn concerns(cycle: &Cycle<'_>) -> bool {
    cycle.affinity.depends_on_pods()
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
