//! The subset of a pod that exists and has none yet.

use serde_json::{Map, Value, json};
use shared_json::Value as Shared;

use crate::api::labels;
use crate::api::v1alpha1::{WorkloadSpread, WorkloadSpreadSubset};
use crate::injection::spreads::fill::{has_patch, terms_with};
use crate::injection::spreads::matched::Matched;
use crate::kit::json::merge;

/// The place of the terms that a pod's node must match.
const REQUIRED: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
/// All effects of taints.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The subset that suits a pod on its node best, by its place in the spec. `rooms` says how many more pods each takes.
pub(super) fn best(spread: &WorkloadSpread, pod: &Value, node: &Value, rooms: &[i64]) -> Option<usize> {
    let mut best: Option<(usize, i64)> = None;
    for (at, subset) in spread.spec.subsets.iter().enumerate() {
        if !fits(subset, pod, node) {
            continue;
        }
        let room = rooms.get(at).is_some_and(|room| *room > 0);
        let score = preference(subset, node) * 100 + i64::from(has_patch(pod, subset)) * 10 + i64::from(room);
        if best.is_none_or(|(_, most)| score > most) {
            best = Some((at, score));
        }
    }
    best.map(|(at, _)| at)
}

/// A value as the rules for nodes take it.
fn shared(value: &Value) -> Shared {
    Shared::from(value.clone())
}

/// The labels and the name of a node.
fn node_of(node: &Value) -> (shared_json::Map, String) {
    let labels = node.pointer("/metadata/labels").map(shared).unwrap_or_default();
    let name = node
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    (labels.as_object().cloned().unwrap_or_default(), name.to_owned())
}

fn term_matches(term: &Value, node: &Value) -> bool {
    let (labels, name) = node_of(node);
    pod_rules::nodes::term_matches(&shared(term), &labels, &name)
}

/// Whether a pod on its node may be in a subset.
fn fits(subset: &WorkloadSpreadSubset, pod: &Value, node: &Value) -> bool {
    let own = pod.pointer("/spec/tolerations").and_then(Value::as_array);
    let more: Vec<Value> = subset
        .tolerations
        .iter()
        .flatten()
        .map(|one| json!(one))
        .collect();
    let tolerations: Vec<&Value> = own.into_iter().flatten().chain(&more).collect();
    let tolerant = shared(&json!({ "spec": { "tolerations": tolerations } }));
    let taints = node.pointer("/spec/taints").and_then(Value::as_array);
    let taints: Vec<Shared> = taints.into_iter().flatten().map(shared).collect();
    if !pod_rules::nodes::tolerates_all(&tolerant, &taints, &EFFECTS) {
        return false;
    }
    let Some(term) = &subset.required_node_selector_term else {
        return true;
    };
    let terms = terms_with(pod.pointer(REQUIRED).unwrap_or(&Value::Null), &json!(term));
    let terms = terms.as_array().map_or(&[][..], Vec::as_slice);
    terms.iter().any(|term| term_matches(term, node))
}

/// The weights of the terms that a node matches.
fn preference(subset: &WorkloadSpreadSubset, node: &Value) -> i64 {
    let terms = subset.preferred_node_selector_terms.iter().flatten();
    let met = terms.filter(|term| term_matches(&json!(term.preference), node));
    met.map(|term| i64::from(term.weight)).sum()
}

/// The patch that puts a pod into a subset.
pub(super) fn patch(spread: &WorkloadSpread, subset: &WorkloadSpreadSubset) -> Value {
    let matched = Matched {
        name: spread.metadata.name.clone().unwrap_or_default(),
        subset: subset.name.clone(),
        uid: String::new(),
    };
    let mut metadata = json!({});
    let annotations = spread.metadata.annotations.as_ref();
    let ignores = annotations.and_then(|notes| notes.get(labels::SPREAD_IGNORES_METADATA));
    if !ignores.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        let patch = subset.patch.as_ref().and_then(|patch| patch.get("metadata"));
        for part in ["annotations", "labels"] {
            if let Some(texts) = patch.and_then(|patch| patch.get(part)).and_then(Value::as_object) {
                metadata[part] = Value::Object(Map::clone(texts));
            }
        }
    }
    merge(
        &mut metadata,
        json!({ "annotations": { labels::MATCHED_SPREAD: matched.text() } }),
    );
    json!({ "metadata": metadata })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn spread(subsets: Value) -> WorkloadSpread {
        serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread", "metadata": { "name": "ws" },
            "spec": { "targetRef": { "apiVersion": "v1", "kind": "k", "name": "n" }, "subsets": subsets },
        }))
        .unwrap()
    }

    fn on(zone: &str) -> Value {
        json!({ "matchExpressions": [{ "key": "zone", "operator": "In", "values": [zone] }] })
    }

    fn node(taint: &str) -> Value {
        let taints = json!([{ "key": "k", "effect": taint }]);
        let taints = if taint.is_empty() { json!([]) } else { taints };
        json!({ "metadata": { "name": "n1", "labels": { "zone": "a" } }, "spec": { "taints": taints } })
    }

    /// The subsets, the rooms, and the place of the one that is found.
    #[rstest]
    #[case::both_fit(json!([{ "name": "a" }, { "name": "b" }]), &[1, 5], Some(0))]
    #[case::no_room(json!([{ "name": "a" }, { "name": "b" }]), &[0, 5], Some(1))]
    #[case::only_one_fits(json!([{ "name": "a" }, { "name": "b", "requiredNodeSelectorTerm": on("b") }]), &[0, 5], Some(0))]
    #[case::preferred(
        json!([{ "name": "a" }, { "name": "b", "preferredNodeSelectorTerms": [{ "weight": 10, "preference": on("a") }] }]),
        &[1, 0], Some(1)
    )]
    #[case::already_patched(
        json!([{ "name": "a", "patch": { "metadata": { "labels": { "s": "a" } } } }, { "name": "b", "patch": { "metadata": { "labels": { "s": "b" } } } }]),
        &[1, 0], Some(1)
    )]
    #[case::none(json!([{ "name": "a", "requiredNodeSelectorTerm": on("b") }]), &[1], None)]
    fn suiting_subsets(#[case] subsets: Value, #[case] rooms: &[i64], #[case] want: Option<usize>) {
        let pod = json!({ "metadata": { "labels": { "s": "b" } }, "spec": {} });
        assert_eq!(best(&spread(subsets), &pod, &node(""), rooms), want);
    }

    #[rstest]
    #[case("PreferNoSchedule", json!([]), false)]
    #[case("NoSchedule", json!([{ "key": "k", "operator": "Exists" }]), true)]
    fn taints(#[case] taint: &str, #[case] tolerations: Value, #[case] fits: bool) {
        let spread = spread(json!([{ "name": "a", "tolerations": tolerations }]));
        assert_eq!(
            best(&spread, &json!({ "spec": {} }), &node(taint), &[1]).is_some(),
            fits
        );
    }

    #[test]
    fn the_pods_own_terms_count_too() {
        let terms =
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [on("b")] } });
        let pod = json!({ "spec": { "affinity": { "nodeAffinity": terms } } });
        let with = |term: Value| spread(json!([term]));
        let required = with(json!({ "name": "a", "requiredNodeSelectorTerm": on("a") }));
        assert_eq!(best(&required, &pod, &node(""), &[1]), None);
        assert_eq!(
            best(&with(json!({ "name": "a" })), &pod, &node(""), &[1]),
            Some(0)
        );
    }

    #[rstest]
    #[case(None, json!({ "annotations": { "z": "1", labels::MATCHED_SPREAD: r#"{"name":"ws","subset":"a"}"# }, "labels": { "s": "a" } }))]
    #[case(Some("TRUE"), json!({ "annotations": { labels::MATCHED_SPREAD: r#"{"name":"ws","subset":"a"}"# } }))]
    fn patches(#[case] ignores: Option<&str>, #[case] want: Value) {
        let metadata = json!({ "labels": { "s": "a" }, "annotations": { "z": "1" }, "finalizers": ["f"] });
        let mut spread = spread(
            json!([{ "name": "a", "patch": { "metadata": metadata, "spec": { "hostNetwork": true } } }]),
        );
        spread.metadata.annotations =
            ignores.map(|text| [(labels::SPREAD_IGNORES_METADATA.to_owned(), text.to_owned())].into());
        assert_eq!(
            patch(&spread, &spread.spec.subsets[0]),
            json!({ "metadata": want })
        );
    }
}
