//! Node selectors and node affinity.

use std::collections::BTreeSet;

use shared_json::{Map, Value};

use super::super::cluster::{NodeInfo, list, text};
use super::{Cycle, Refusal};
use crate::meta::{ObjectMeta as _, at, string_map};

const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

fn requirement(requirement: &Value, value: Option<&str>) -> bool {
    let values: Vec<&str> = list(requirement, "values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let compare = |greater: bool| {
        let (Some(have), Some(than)) = (
            value.and_then(|text| text.parse::<i64>().ok()),
            values.first().and_then(|text| text.parse::<i64>().ok()),
        ) else {
            return false;
        };
        if greater { have > than } else { have < than }
    };
    match text(requirement, "operator") {
        "In" => value.is_some_and(|value| values.contains(&value)),
        "NotIn" => value.is_none_or(|value| !values.contains(&value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(true),
        "Lt" => compare(false),
        _ => false,
    }
}

/// Whether a node fits a term of a node selector. An empty term fits none.
pub(in super::super) fn term_matches(term: &Value, labels: &Map, name: &str) -> bool {
    let (expressions, fields) = (list(term, "matchExpressions"), list(term, "matchFields"));
    !(expressions.is_empty() && fields.is_empty())
        && expressions
            .iter()
            .all(|one| requirement(one, labels.get(text(one, "key")).and_then(Value::as_str)))
        && fields
            .iter()
            .all(|one| text(one, "key") == "metadata.name" && requirement(one, Some(name)))
}

/// Whether a pod's selector and required affinity let it onto a node.
pub(crate) fn node_matches(pod: &Value, node: &Value) -> bool {
    let labels = string_map(node, "labels");
    let selected = at(pod, "spec.nodeSelector")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let required = at(pod, REQUIRED).filter(|required| required.is_object());
    selected
        && required.is_none_or(|required| {
            list(required, "nodeSelectorTerms")
                .iter()
                .any(|term| term_matches(term, labels, node.name()))
        })
}

/// What a pod would rather have of its node.
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
