//! Node selectors and node affinity.

use std::collections::BTreeSet;

use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::{REQUIRED_AFFINITY as REQUIRED, node_matches, term_matches};
use shared_json::Value;

use super::super::cluster::{NodeInfo, list, text};
use super::{Cycle, Refusal};

const PREFERRED: &str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

/// A pod's preferred terms of node affinity.
pub(in super::super) fn preferences(pod: &Value) -> &[Value] {
    list(pod, PREFERRED)
}

/// The weight of the preferences that a node fits.
pub(in super::super) fn preferred(pod: &Value, node: &NodeInfo) -> i64 {
    preferences(pod)
        .iter()
        .filter(|preference| {
            at(preference, "preference").is_some_and(|term| term_matches(term, node.labels(), node.name()))
        })
        .filter_map(|preference| preference.get("weight").and_then(Value::as_i64))
        .sum()
}

/// The nodes that a pod is meant for by their names, if each of its terms names some: all others are left out before they are
/// looked at.
pub(in super::super) fn named(pod: &Value) -> Option<BTreeSet<&str>> {
    let terms = at(pod, REQUIRED)
        .map(|required| list(required, "nodeSelectorTerms"))
        .filter(|terms| !terms.is_empty())?;
    let of_term = |term| {
        let fields = list(term, "matchFields")
            .iter()
            .filter(|field| text(field, "key") == "metadata.name" && text(field, "operator") == "In");
        let names = fields.map(|field| -> BTreeSet<&str> {
            list(field, "values").iter().filter_map(Value::as_str).collect()
        });
        names.reduce(|one, other| one.intersection(&other).copied().collect())
    };
    terms.iter().try_fold(BTreeSet::new(), |mut all, term| {
        all.extend(of_term(term)?);
        Some(all)
    })
}

pub(super) fn concerns(cycle: &Cycle<'_>) -> bool {
    let pod = &cycle.pod.object;
    at(pod, "spec.nodeSelector").is_some() || at(pod, REQUIRED).is_some()
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    if named(&cycle.pod.object).is_some_and(|named| !named.contains(node.object.name())) {
        return Some(Refusal::hopeless(
            "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ));
    }
    (!node_matches(&cycle.pod.object, &node.object))
        .then(|| Refusal::hopeless("node(s) didn't match Pod's node affinity/selector"))
}
