//! `matchLabelKeys` and `mismatchLabelKeys` of a new pod: the values of its own labels are written into the selectors.

use machinery::meta::string_map;
use shared_json::{Map, Value, json};

/// Completes the selectors of a pod's affinities and spreads.
pub(super) fn apply(pod: &mut Value) {
    let uses = |field: &str| pod.get("spec").is_some_and(|spec| spec.get(field).is_some());
    if !uses("affinity") && !uses("topologySpreadConstraints") {
        return;
    }
    let labels = string_map(pod, "labels").clone();
    for affinity in ["podAffinity", "podAntiAffinity"] {
        for (strength, term) in [
            (
                "preferredDuringSchedulingIgnoredDuringExecution",
                "/podAffinityTerm",
            ),
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
        ] {
            let pointer = format!("/spec/affinity/{affinity}/{strength}");
            let terms = pod.pointer_mut(&pointer).and_then(Value::as_array_mut);
            for term in terms
                .into_iter()
                .flatten()
                .filter_map(|item| item.pointer_mut(term))
            {
                complete(term, &labels);
            }
        }
    }
    let spreads = pod
        .pointer_mut("/spec/topologySpreadConstraints")
        .and_then(Value::as_array_mut);
    for spread in spreads.into_iter().flatten() {
        complete(spread, &labels);
    }
}

fn complete(term: &mut Value, labels: &Map) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term
            .get(field)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else {
            return;
        };
        for key in keys.iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else { continue };
            let expressions = selector.entry("matchExpressions").or_insert(Value::Null);
            if expressions.is_null() {
                *expressions = json!([]);
            }
            if let Some(expressions) = expressions.as_array_mut() {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_completed_by_the_pods_own_labels() {
        let mut pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"topologySpreadConstraints": [
            {"labelSelector": {}, "matchLabelKeys": ["app", "other"]},
            {"matchLabelKeys": ["app"]},
        ]}});
        apply(&mut pod);
        assert_eq!(
            pod["spec"]["topologySpreadConstraints"],
            json!([
                {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}, "matchLabelKeys": ["app", "other"]},
                {"matchLabelKeys": ["app"]},
            ])
        );
    }
}
