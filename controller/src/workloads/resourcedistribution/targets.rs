//! Which namespaces get a copy.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};

use crate::api::v1alpha1::{ResourceDistributionTargetNamespaces, ResourceDistributionTargets};

/// Labels of a namespace.
pub(super) type Labels = BTreeMap<String, String>;

/// The namespaces of a pass, both by name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// Those that are to have a copy, also such as do not exist.
    pub(super) matched: Vec<String>,
    /// The other ones that exist.
    pub(super) unmatched: Vec<String>,
}

/// Divides the existing namespaces.
///
/// # Errors
/// If the selector is none.
pub(super) fn divide<'a>(
    targets: &ResourceDistributionTargets,
    existing: impl IntoIterator<Item = (&'a str, &'a Labels)>,
) -> Result<Division, String> {
    let selector = selector(targets)?;
    let mut matched = BTreeSet::new();
    let mut unmatched = BTreeSet::new();
    for (name, labels) in existing {
        let selected = selector.as_ref().is_some_and(|selector| selector.matches(labels));
        if targets.all_namespaces || selected {
            matched.insert(name);
        }
        unmatched.insert(name);
    }
    if !targets.all_namespaces {
        matched.extend(names(targets.included_namespaces.as_ref()));
    }
    matched.retain(|name| !is_in(targets.excluded_namespaces.as_ref(), name));
    unmatched.retain(|name| !matched.contains(name));
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    Ok(Division {
        matched: owned(matched),
        unmatched: owned(unmatched),
    })
}

/// Whether a new namespace is one that is to have a copy.
pub(super) fn wants(targets: &ResourceDistributionTargets, name: &str, labels: &Labels) -> bool {
    !is_in(targets.excluded_namespaces.as_ref(), name)
        && (targets.all_namespaces || names_namespace(targets, name) || selects(targets, labels))
}

/// Whether a namespace is named as one that is to have a copy.
pub(super) fn names_namespace(targets: &ResourceDistributionTargets, name: &str) -> bool {
    is_in(targets.included_namespaces.as_ref(), name)
}

/// Whether the selector says something and selects these labels.
pub(super) fn selects(targets: &ResourceDistributionTargets, labels: &Labels) -> bool {
    selector(targets).is_ok_and(|selector| selector.is_some_and(|selector| selector.matches(labels)))
}

fn selector(targets: &ResourceDistributionTargets) -> Result<Option<Selector>, String> {
    let says_something = |selector: &&LabelSelector| {
        let labels = selector.match_labels.as_ref();
        let expressions = selector.match_expressions.as_ref();
        labels.is_some_and(|labels| !labels.is_empty()) || expressions.is_some_and(|list| !list.is_empty())
    };
    let selector = targets.namespace_label_selector.as_ref().filter(says_something);
    selector
        .map(|selector| Selector::try_from(selector.clone()).map_err(|error| error.to_string()))
        .transpose()
}

fn names(list: Option<&ResourceDistributionTargetNamespaces>) -> impl Iterator<Item = &str> {
    list.into_iter()
        .flat_map(ResourceDistributionTargetNamespaces::names)
}

fn is_in(list: Option<&ResourceDistributionTargetNamespaces>, name: &str) -> bool {
    names(list).any(|listed| listed == name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn list(names: &str) -> Value {
        let names: Vec<Value> = names
            .split_whitespace()
            .map(|name| json!({ "name": name }))
            .collect();
        json!({ "list": names })
    }

    /// `all`, `in:` and `not:` with names, `x=1` for a selector.
    fn targets(text: &str) -> ResourceDistributionTargets {
        let mut value = json!({});
        for part in text.split(", ").filter(|part| !part.is_empty()) {
            match part.split_once(':') {
                Some(("in", names)) => value["includedNamespaces"] = list(names),
                Some(("not", names)) => value["excludedNamespaces"] = list(names),
                _ if part == "all" => value["allNamespaces"] = json!(true),
                _ if part == "nothing" => value["namespaceLabelSelector"] = json!({}),
                _ => {
                    let (key, label) = part.split_once('=').unwrap();
                    value["namespaceLabelSelector"] = json!({ "matchLabels": { key: label } });
                }
            }
        }
        serde_json::from_value(value).unwrap()
    }

    fn labels(name: &str) -> Labels {
        let label = (name == "b").then(|| ("x".to_owned(), "1".to_owned()));
        label.into_iter().collect()
    }

    /// The namespaces a, b (with x=1), c and kube-system.
    #[rstest]
    #[case::names("in:a b", "a b", "c kube-system")]
    #[case::a_name_that_does_not_exist("in:a z", "a z", "b c kube-system")]
    #[case::selector("x=1", "b", "a c kube-system")]
    #[case::selector_and_names("x=1, in:a", "a b", "c kube-system")]
    #[case::all_but_one("all, not:c", "a b kube-system", "c")]
    #[case::all_ignores_names("all, in:z", "a b c kube-system", "")]
    #[case::all_ignores_the_selector("all, x=1", "a b c kube-system", "")]
    #[case::none("", "", "a b c kube-system")]
    #[case::empty_selector("nothing", "", "a b c kube-system")]
    #[case::excluded_wins_over_the_selector("x=1, not:b", "", "a b c kube-system")]
    #[case::excluded_wins_over_names("in:a, not:a", "", "a b c kube-system")]
    #[case::twice("in:a a", "a", "b c kube-system")]
    fn divided(#[case] text: &str, #[case] matched: &str, #[case] unmatched: &str) {
        let existing: Vec<(&str, Labels)> = ["kube-system", "c", "b", "a"]
            .map(|name| (name, labels(name)))
            .into();
        let existing = existing.iter().map(|(name, labels)| (*name, labels));
        let division = divide(&targets(text), existing).unwrap();
        assert_eq!(division.matched.join(" "), matched);
        assert_eq!(division.unmatched.join(" "), unmatched);
    }

    /// Which of a, b and c, when they appear, when they go, and when their labels change.
    #[rstest]
    #[case("in:a b", "a b", "a b", "")]
    #[case("in:a b, not:b", "a", "a b", "")]
    #[case("all", "a b c", "", "")]
    #[case("all, not:a", "b c", "", "")]
    #[case("x=1", "b", "", "b")]
    #[case("x=1, not:b", "", "", "b")]
    #[case("all, x=1, in:c", "a b c", "c", "b")]
    #[case("nothing", "", "", "")]
    fn woken(#[case] text: &str, #[case] by_new: &str, #[case] by_gone: &str, #[case] by_labels: &str) {
        let targets = targets(text);
        let of = |wakes: &dyn Fn(&str) -> bool| -> String {
            let names: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| wakes(name)).collect();
            names.join(" ")
        };
        assert_eq!(of(&|name| wants(&targets, name, &labels(name))), by_new);
        assert_eq!(of(&|name| names_namespace(&targets, name)), by_gone);
        assert_eq!(of(&|name| selects(&targets, &labels(name))), by_labels);
    }

    #[test]
    fn a_selector_that_is_none_ends_the_pass() {
        let targets: ResourceDistributionTargets = serde_json::from_value(json!({
            "namespaceLabelSelector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] },
        }))
        .unwrap();
        assert!(divide(&targets, []).is_err());
        assert!(!selects(&targets, &Labels::new()));
    }
}
