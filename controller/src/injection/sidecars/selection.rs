//! Which sets select a pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};

use crate::api::v1beta1::SidecarSet;
pub(crate) use crate::kit::selector::selects;

/// The label of a namespace that has its name.
pub(crate) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Labels of a pod or a namespace.
pub(crate) type Labels = BTreeMap<String, String>;

/// The namespaces that a selector names, if it names any: by label, or else by an expression.
pub(crate) fn named_namespaces(selector: Option<&LabelSelector>) -> Option<Vec<&str>> {
    let selector = selector?;
    let label = selector
        .match_labels
        .as_ref()
        .and_then(|labels| labels.get(NAMESPACE_NAME));
    if let Some(name) = label {
        return Some(vec![name]);
    }
    let mut expressions = selector.match_expressions.iter().flatten();
    let named =
        expressions.find(|expression| expression.key == NAMESPACE_NAME && expression.operator == "In")?;
    Some(named.values.iter().flatten().map(String::as_str).collect())
}

/// Whether a namespace with these labels is one of the set's; none, if it is not known.
pub(crate) fn selects_namespace(set: &SidecarSet, namespace: Option<&Labels>) -> Result<bool, String> {
    let Some(selector) = &set.spec.namespace_selector else {
        return Ok(true);
    };
    let Some(labels) = namespace else { return Ok(false) };
    let matcher = Selector::try_from(selector.clone()).map_err(|error| error.to_string())?;
    Ok(matcher.matches(labels))
}

/// Whether a new pod with these labels, in a namespace with those, gets the set.
///
/// # Errors
/// The text of a selector that cannot be read.
pub(crate) fn is_for(set: &SidecarSet, pod: &Labels, namespace: Option<&Labels>) -> Result<bool, String> {
    let injection = set.spec.injection_strategy.as_ref();
    if injection.is_some_and(|injection| injection.paused == Some(true)) {
        return Ok(false);
    }
    if !selects_namespace(set, namespace)? {
        return Ok(false);
    }
    match &set.spec.selector {
        Some(selector) => selects(selector, pod),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn labels(value: &Value) -> Labels {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[rstest]
    #[case::everywhere(json!({ "selector": { "matchLabels": { "app": "x" } } }), Ok(true))]
    #[case::other_labels(json!({ "selector": { "matchLabels": { "app": "y" } } }), Ok(false))]
    #[case::no_selector(json!({}), Ok(false))]
    #[case::empty_selector(json!({ "selector": {} }), Ok(false))]
    #[case::paused(json!({ "selector": { "matchLabels": { "app": "x" } }, "injectionStrategy": { "paused": true } }), Ok(false))]
    #[case::its_namespace(
        json!({ "selector": { "matchLabels": { "app": "x" } }, "namespaceSelector": { "matchLabels": { "team": "blue" } } }),
        Ok(true)
    )]
    #[case::another_namespace(
        json!({ "selector": { "matchLabels": { "app": "x" } }, "namespaceSelector": { "matchLabels": { "team": "red" } } }),
        Ok(false)
    )]
    #[case::empty_namespace_selector(
        json!({ "selector": { "matchLabels": { "app": "x" } }, "namespaceSelector": {} }),
        Ok(true)
    )]
    #[case::invalid(json!({ "selector": { "matchExpressions": [{ "key": "app", "operator": "In" }] } }), Err(()))]
    fn pods(#[case] spec: Value, #[case] want: Result<bool, ()>) {
        let set = SidecarSet::new("s", serde_json::from_value(spec).unwrap());
        let (pod, namespace) = (labels(&json!({ "app": "x" })), labels(&json!({ "team": "blue" })));
        assert_eq!(is_for(&set, &pod, Some(&namespace)).map_err(drop), want);
    }

    #[test]
    fn a_namespace_that_is_not_known_is_not_selected() {
        let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "namespaceSelector": {} });
        let set = SidecarSet::new("s", serde_json::from_value(spec).unwrap());
        assert_eq!(is_for(&set, &labels(&json!({ "app": "x" })), None), Ok(false));
    }

    #[rstest]
    #[case(json!({ "matchLabels": { "kubernetes.io/metadata.name": "a" } }), Some(vec!["a"]))]
    #[case(json!({ "matchExpressions": [{ "key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"] }] }), Some(vec!["a", "b"]))]
    #[case(json!({ "matchExpressions": [{ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a"] }] }), None)]
    #[case(json!({ "matchLabels": { "team": "blue" } }), None)]
    fn namespaces_that_are_named(#[case] selector: Value, #[case] want: Option<Vec<&str>>) {
        let selector: LabelSelector = serde_json::from_value(selector).unwrap();
        assert_eq!(named_namespaces(Some(&selector)), want);
    }
}
