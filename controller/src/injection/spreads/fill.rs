//! Fills a subset into a pod.

use serde_json::{Value, json};

use crate::api::v1alpha1::WorkloadSpreadSubset;
use crate::pods::strategic;

/// The place of the terms that a pod's node must match.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The place of the terms that a pod prefers.
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Fills a subset into a pod: its tolerations, its terms, its patch.
///
/// # Errors
/// The text about a patch that cannot be applied.
pub(crate) fn fill(pod: &mut Value, subset: &WorkloadSpreadSubset) -> Result<(), String> {
    if !pod.get("spec").is_some_and(Value::is_object) {
        return Ok(());
    }
    constrain(pod, subset);
    let Some(patch) = &subset.patch else { return Ok(()) };
    let class = |pod: &Value| pod.pointer("/spec/priorityClassName").cloned();
    let before = class(pod);
    strategic::merge(pod, patch)?;
    // The server finds the priority of the class.
    if class(pod) != before
        && let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("priority");
    }
    Ok(())
}

/// Adds a subset's tolerations and terms to a pod.
fn constrain(pod: &mut Value, subset: &WorkloadSpreadSubset) {
    let spec = &mut pod["spec"];
    for toleration in subset.tolerations.iter().flatten() {
        push(&mut spec["tolerations"], json!(toleration));
    }
    let affinity = &mut spec["affinity"];
    if !affinity.is_object() {
        *affinity = json!({});
    }
    let nodes = &mut affinity["nodeAffinity"];
    if !nodes.is_object() {
        *nodes = json!({});
    }
    for term in subset.preferred_node_selector_terms.iter().flatten() {
        push(&mut nodes[PREFERRED], json!(term));
    }
    if let Some(term) = &subset.required_node_selector_term {
        let terms = &mut nodes[REQUIRED]["nodeSelectorTerms"];
        let merged = terms_with(terms, &json!(term));
        *terms = merged;
    }
}

/// The terms, each with the requirements of another one; that one alone where there are none.
pub(crate) fn terms_with(terms: &Value, term: &Value) -> Value {
    let Some(terms) = terms.as_array().filter(|terms| !terms.is_empty()) else {
        return json!([term]);
    };
    let mut terms = terms.clone();
    for one in &mut terms {
        for list in ["matchExpressions", "matchFields"] {
            let more = term.get(list).and_then(Value::as_array);
            for requirement in more.into_iter().flatten() {
                push(&mut one[list], requirement.clone());
            }
        }
    }
    Value::Array(terms)
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

/// Whether the patch of a subset changes nothing of a pod but its annotations.
pub(crate) fn has_patch(pod: &Value, subset: &WorkloadSpreadSubset) -> bool {
    let Some(patch) = &subset.patch else { return true };
    let mut patched = pod.clone();
    if strategic::merge(&mut patched, patch).is_err() {
        return false;
    }
    let without_annotations = |pod: &Value| {
        let mut pod = pod.clone();
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("annotations");
        }
        pod
    };
    without_annotations(pod) == without_annotations(&patched)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn requirement(value: &str) -> Value {
        json!({ "key": "zone", "operator": "In", "values": [value] })
    }

    fn subset(fields: Value) -> WorkloadSpreadSubset {
        let mut subset = json!({ "name": "a" });
        crate::kit::json::merge(&mut subset, fields);
        serde_json::from_value(subset).unwrap()
    }

    #[rstest]
    #[case::empty(json!({}), json!({}), json!({ "affinity": { "nodeAffinity": {} } }))]
    #[case::required(
        json!({ "requiredNodeSelectorTerm": { "matchExpressions": [requirement("a")] } }),
        json!({}),
        json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [{ "matchExpressions": [requirement("a")] }] } } } })
    )]
    #[case::required_more(
        json!({ "requiredNodeSelectorTerm": { "matchExpressions": [requirement("a")] } }),
        json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [{ "matchExpressions": [requirement("b")] }, {}] } } } }),
        json!({ "affinity": { "nodeAffinity": { REQUIRED: { "nodeSelectorTerms": [
            { "matchExpressions": [requirement("b"), requirement("a")] }, { "matchExpressions": [requirement("a")] }] } } } })
    )]
    #[case::preferred(
        json!({ "preferredNodeSelectorTerms": [{ "weight": 1, "preference": { "matchExpressions": [requirement("a")] } }] }),
        json!({ "affinity": { "nodeAffinity": { PREFERRED: [{ "weight": 2, "preference": {} }] } } }),
        json!({ "affinity": { "nodeAffinity": { PREFERRED: [
            { "weight": 2, "preference": {} }, { "weight": 1, "preference": { "matchExpressions": [requirement("a")] } }] } } })
    )]
    #[case::tolerations(
        json!({ "tolerations": [{ "key": "k", "operator": "Exists" }] }),
        json!({ "tolerations": [{ "key": "j" }] }),
        json!({ "tolerations": [{ "key": "j" }, { "key": "k", "operator": "Exists" }], "affinity": { "nodeAffinity": {} } })
    )]
    #[case::patch(
        json!({ "patch": { "spec": { "priorityClassName": "high" } } }),
        json!({ "priorityClassName": "low", "priority": 3 }),
        json!({ "priorityClassName": "high", "affinity": { "nodeAffinity": {} } })
    )]
    fn subsets(#[case] fields: Value, #[case] spec: Value, #[case] want: Value) {
        let mut pod = json!({ "metadata": {}, "spec": spec });
        fill(&mut pod, &subset(fields)).unwrap();
        assert_eq!(pod["spec"], want);
    }

    #[rstest]
    #[case(json!({}), true)]
    #[case(json!({ "patch": { "metadata": { "labels": { "l": "1" } } } }), true)]
    #[case(json!({ "patch": { "metadata": { "annotations": { "z": "1" } } } }), true)]
    #[case(json!({ "patch": { "metadata": { "labels": { "l": "2" } } } }), false)]
    fn patches_that_pods_have(#[case] fields: Value, #[case] want: bool) {
        let pod = json!({ "metadata": { "labels": { "l": "1" } }, "spec": {} });
        assert_eq!(has_patch(&pod, &subset(fields)), want);
    }
}
