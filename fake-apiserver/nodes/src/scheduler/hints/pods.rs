//! The hints of filters that look at other pods.

use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Map, Value};

use super::super::cluster::{Cluster, PodInfo, list, text};
use super::super::filters::{affinity_terms, clash, is_about, spread_constraints, spread_selects};
use super::{Event, NodeEvent, tolerates_more};

pub(super) fn ports(event: &Event<'_>, pod: &PodInfo) -> bool {
    match event {
        Event::Node(node) => node.is_new(),
        Event::Pod(Some(gone), None) => {
            let wanted = &pod.ports;
            gone.ports
                .iter()
                .any(|port| wanted.iter().any(|wanted| clash(wanted, port)))
        }
        _ => false,
    }
}

pub(super) fn spread(event: &Event<'_>, pod: &PodInfo) -> bool {
    let hard = || spread_constraints(&pod.object, true);
    let selected = |labels: &Map| hard().any(|constraint| spread_selects(constraint, pod, labels));
    let reselected = |old: &PodInfo, new: &PodInfo| {
        hard().any(|constraint| {
            let selects = |other: &PodInfo| spread_selects(constraint, pod, other.labels());
            selects(old) != selects(new)
        })
    };
    let is_near = |other: &PodInfo| other.object.namespace() == pod.object.namespace();
    match event {
        Event::Pod(Some(old), Some(new)) => is_near(new) && reselected(old, new),
        Event::Pod(one, other) => one
            .or(*other)
            .is_some_and(|other| is_near(other) && selected(other.labels())),
        Event::Own(old, new) => {
            let minds_taints = hard().any(|constraint| text(constraint, "nodeTaintsPolicy") == "Honor");
            (minds_taints && tolerates_more(old, new)) || reselected(old, new)
        }
        Event::Node(node) => spread_over(node, hard),
        _ => false,
    }
}

/// Whether a node has become one of those that a pod is spread over, is so no longer, or has moved among them.
fn spread_over<'a, I: Iterator<Item = &'a Value>>(node: &NodeEvent<'_>, hard: impl Fn() -> I) -> bool {
    let counts = |node: &Value| {
        let labels = string_map(node, "labels");
        hard().all(|constraint| labels.contains_key(text(constraint, "topologyKey")))
    };
    let moved = |old: &Value, new: &Value| {
        let (old, new) = (string_map(old, "labels"), string_map(new, "labels"));
        hard().any(|constraint| {
            let key = text(constraint, "topologyKey");
            old.get(key) != new.get(key)
        })
    };
    match (node.old, node.new) {
        (Some(_), Some(_)) if !node.labels && !node.taints => false,
        (Some(old), Some(new)) => {
            let tainted = || list(old, "spec.taints") != list(new, "spec.taints");
            counts(old) != counts(new) || (counts(new) && (moved(old, new) || tainted()))
        }
        (one, other) => one.or(other).is_some_and(counts),
    }
}

pub(super) fn affinity(event: &Event<'_>, pod: &PodInfo, cluster: &Cluster) -> bool {
    let wanted = affinity_terms(&pod.object, "podAffinity", true);
    let unwanted = affinity_terms(&pod.object, "podAntiAffinity", true);
    let all_about = |terms: &[Value], of: &PodInfo, other: &PodInfo| {
        !terms.is_empty()
            && terms
                .iter()
                .all(|term| is_about(cluster, term, &of.object, other))
    };
    match event {
        Event::Own(old, new) => old.labels() != new.labels(),
        Event::Pod(Some(old), Some(new)) => {
            (!all_about(wanted, pod, old) && all_about(wanted, pod, new))
                || (all_about(unwanted, pod, old) && !all_about(unwanted, pod, new))
        }
        Event::Pod(None, Some(new)) => all_about(wanted, pod, new),
        Event::Pod(Some(gone), None) => {
            let others = affinity_terms(&gone.object, "podAntiAffinity", true);
            all_about(unwanted, pod, gone) || all_about(others, gone, pod)
        }
        Event::Node(node) if node.is_new() || node.labels => {
            let Some(new) = node.new.map(|new| string_map(new, "labels")) else {
                return false;
            };
            let Some(old) = node.old.map(|old| string_map(old, "labels")) else {
                return !unwanted.is_empty()
                    || wanted
                        .iter()
                        .any(|term| new.contains_key(text(term, "topologyKey")));
            };
            let places = |term: &Value| {
                let key = text(term, "topologyKey");
                (old.get(key).cloned(), new.get(key).cloned())
            };
            // A node of the right place has come, or one of the wrong place has gone.
            wanted
                .iter()
                .map(places)
                .any(|(old, new)| new.is_some() && old != new)
                || unwanted
                    .iter()
                    .map(places)
                    .any(|(old, new)| old.is_some() && old != new)
        }
        _ => false,
    }
}
