//! Which nodes fit a set, and which changes of a node concern it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use kube::{Resource as _, ResourceExt as _};
use pod_rules::nodes::daemon::{self, Fit};
use shared_json::{Value, json};

use super::settings::is_rolling;
use crate::api::v1beta1::DaemonSet;
use crate::pods::CachedNode;

/// What the pods of a set have in common, as far as nodes look at it.
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
    let strategy = set.spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let Some(selector) = rolling.and_then(|rolling| rolling.selector.clone()) else {
        return Ok(None);
    };
    match Selector::try_from(selector) {
        Ok(selector) => Ok(Some(selector)),
        Err(error) => Err(format!(
            "invalid spec.updateStrategy.rollingUpdate.selector: {error}"
        )),
    }
}

/// Whether the selector of the nodes whose pods are updated selects a node. One that selects everything does not count.
fn is_selected(set: &DaemonSet, node: &CachedNode) -> bool {
    let strategy = set.spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let counts = rolling
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
