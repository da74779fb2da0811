//! Which nodes fit a set, and which changes of a node concern it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use kube::{Resource as _, ResourceExt as _};
use pod_rules::nodes::daemon::{self, Fit};
use shared_json::{Value, json};

use super::settings::{is_rolling, rolling_update};
use crate::api::v1beta1::DaemonSet;
use crate::pods::CachedNode;

/// The common form of the pods of a set, as far as nodes look at it.
pub(super) struct Form(Value);

impl Form {
    /// That of `set`.
    pub(super) fn of(set: &DaemonSet) -> Self {
        let spec = set.spec.template.get("spec").cloned().unwrap_or_default();
        let mut pod = json!({ "spec": Value::from(spec) });
        daemon::tolerate(&mut pod);
        Self(pod)
    }

    /// How a node fits.
    pub(super) fn fit(&self, node: &CachedNode) -> Fit {
        daemon::fit(&self.0, node.shape())
    }
}

/// Whether a selector selects everything.
pub(super) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.iter().flatten().next().is_none()
        && selector.match_expressions.iter().flatten().next().is_none()
}

/// The selector of the nodes whose pods are updated, if there is one.
///
/// # Errors
/// A selector that is none.
pub(super) fn update_selector(set: &DaemonSet) -> Result<Option<Selector>, String> {
    let selector = rolling_update(set).and_then(|rolling| rolling.selector.as_ref());
    match selector.map(node_selector).transpose() {
        Ok(selector) => Ok(selector),
        Err(error) => Err(format!(
            "invalid spec.updateStrategy.rollingUpdate.selector: {error}"
        )),
    }
}

/// A selector of nodes. `In` without values selects none of them.
///
/// # Errors
/// The text of one that is none.
pub(super) fn node_selector(selector: &LabelSelector) -> Result<Selector, String> {
    let mut selector = selector.clone();
    for requirement in selector.match_expressions.iter_mut().flatten() {
        if matches!(requirement.operator.as_str(), "In" | "NotIn") {
            requirement.values.get_or_insert_default();
        }
    }
    Selector::try_from(selector).map_err(|error| error.to_string())
}

/// Whether the selector of the nodes whose pods are updated selects a node. One that selects everything does not count.
fn is_selected(set: &DaemonSet, node: &CachedNode) -> bool {
    let counts = rolling_update(set)
        .and_then(|rolling| rolling.selector.as_ref())
        .is_some_and(|selector| !is_empty(selector));
    let selector = update_selector(set).ok().flatten().filter(|_| counts);
    is_rolling(set) && selector.is_some_and(|selector| selector.matches(node.labels()))
}

/// Whether a set has to be looked at because a node came or has changed.
pub(super) fn concerns(set: &DaemonSet, before: Option<&CachedNode>, node: &CachedNode) -> bool {
    let form = Form::of(set);
    let Some(before) = before else {
        return form.fit(node).run;
    };
    form.fit(before) != form.fit(node) || is_selected(set, before) != is_selected(set, node)
}

/// Whether a set has to be looked at because a node is gone.
pub(super) fn misses(set: &DaemonSet, node: &CachedNode) -> bool {
    let fit = Form::of(set).fit(node);
    fit.run || fit.stay
}

/// Whether two versions of a node are alike in all that a set asks of one.
pub(super) fn is_the_same(one: &CachedNode, other: &CachedNode) -> bool {
    one.meta().uid == other.meta().uid && one.shape() == other.shape()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    /// A node with a label `sel` and a taint, each `-` where there is none.
    fn node(label: &str, effect: &str) -> Arc<CachedNode> {
        let labels = if label == "-" {
            json!({})
        } else {
            json!({ "sel": label })
        };
        let taints = if effect == "-" {
            json!([])
        } else {
            json!([{ "key": "k", "effect": effect }])
        };
        let node = json!({ "metadata": { "name": "n", "labels": labels }, "spec": { "taints": taints } });
        Arc::new(CachedNode::from(node))
    }

    fn set(node_selector: &serde_json::Value, update: &serde_json::Value) -> DaemonSet {
        serde_json::from_value(serde_json::json!({ "metadata": { "name": "s" }, "spec": {
            "selector": { "matchLabels": { "app": "x" } },
            "template": { "spec": { "nodeSelector": node_selector } },
            "updateStrategy": update,
        } }))
        .unwrap()
    }

    /// The template's node selector, the update strategy, the node before and now.
    #[rstest]
    #[case::new(serde_json::json!({}), serde_json::json!({}), None, ("-", "-"), true)]
    #[case::new_and_not_wanted(serde_json::json!({ "sel": "a" }), serde_json::json!({}), None, ("-", "-"), false)]
    #[case::new_and_tainted(serde_json::json!({}), serde_json::json!({}), None, ("-", "NoSchedule"), false)]
    #[case::alike(serde_json::json!({}), serde_json::json!({}), Some(("a", "-")), ("b", "-"), false)]
    #[case::wanted_now(serde_json::json!({ "sel": "a" }), serde_json::json!({}), Some(("b", "-")), ("a", "-"), true)]
    #[case::tainted(serde_json::json!({}), serde_json::json!({}), Some(("-", "-")), ("-", "NoSchedule"), true)]
    #[case::tainted_more(serde_json::json!({}), serde_json::json!({}), Some(("-", "NoSchedule")), ("-", "NoExecute"), true)]
    #[case::not_much(serde_json::json!({}), serde_json::json!({}), Some(("-", "-")), ("-", "PreferNoSchedule"), false)]
    #[case::selected_for_an_update(
        serde_json::json!({}), serde_json::json!({ "rollingUpdate": { "selector": { "matchLabels": { "sel": "a" } } } }),
        Some(("-", "-")), ("a", "-"), true
    )]
    #[case::selected_but_not_updated(
        serde_json::json!({}),
        serde_json::json!({ "type": "OnDelete", "rollingUpdate": { "selector": { "matchLabels": { "sel": "a" } } } }),
        Some(("-", "-")), ("a", "-"), false
    )]
    #[case::selected_as_all_are(
        serde_json::json!({}), serde_json::json!({ "rollingUpdate": { "selector": {} } }), Some(("-", "-")), ("a", "-"), false
    )]
    fn changes_that_concern_a_set(
        #[case] node_selector: serde_json::Value,
        #[case] update: serde_json::Value,
        #[case] before: Option<(&str, &str)>,
        #[case] now: (&str, &str),
        #[case] expect: bool,
    ) {
        let before = before.map(|(label, effect)| node(label, effect));
        let set = set(&node_selector, &update);
        assert_eq!(concerns(&set, before.as_deref(), &node(now.0, now.1)), expect);
    }

    #[rstest]
    #[case::had_or_may_have_a_pod(serde_json::json!({}), ("-", "NoSchedule"), true)]
    #[case::had_none(serde_json::json!({ "sel": "a" }), ("-", "-"), false)]
    fn nodes_that_are_missed(
        #[case] node_selector: serde_json::Value,
        #[case] gone: (&str, &str),
        #[case] expect: bool,
    ) {
        let set = set(&node_selector, &serde_json::json!({}));
        assert_eq!(misses(&set, &node(gone.0, gone.1)), expect);
    }
}
