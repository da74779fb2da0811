//! A pod's node selector and required node affinity: whether a node matches.

use shared_json::{Map, Value};

use crate::fields::{Fields as _, path};

/// Where a pod says which nodes it may run on.
pub const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
/// The same as a JSON pointer.
pub(super) const POINTER: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";

fn requirement(requirement: &Value, value: Option<&str>) -> bool {
    let values: Vec<&str> = requirement
        .list("values")
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
    match requirement.text("operator") {
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
pub fn term_matches(term: &Value, labels: &Map, name: &str) -> bool {
    let (expressions, fields) = (term.list("matchExpressions"), term.list("matchFields"));
    !(expressions.is_empty() && fields.is_empty())
        && expressions
            .iter()
            .all(|one| requirement(one, labels.get(one.text("key")).and_then(Value::as_str)))
        && fields
            .iter()
            .all(|one| one.text("key") == "metadata.name" && requirement(one, Some(name)))
}

/// Whether a pod's selector and required affinity let it onto a node.
pub fn node_matches(pod: &Value, node: &Value) -> bool {
    let metadata = node.map("metadata");
    let (name, labels) = (metadata.text("name"), metadata.map("labels"));
    let selected = path(pod, "/spec/nodeSelector")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let required = path(pod, POINTER).filter(|required| required.is_object());
    selected
        && required.is_none_or(|required| {
            required
                .list("nodeSelectorTerms")
                .iter()
                .any(|term| term_matches(term, labels, name))
        })
}
