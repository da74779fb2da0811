//! The nodes that a job wants.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};

use crate::api::v1beta1::{ImageNodeSelector, ImagePullJob, NodeImage};
use crate::images::rules::labels;
use crate::pods::pod::{self, Pod};

/// A selector that has been read.
pub(super) enum Wanted {
    /// All nodes.
    All,
    /// Those of these names.
    Named(BTreeSet<String>),
    /// Those with labels.
    Labelled(Selector),
    /// Those of pods with labels.
    OfPods(Selector),
    /// None: the selector cannot be read.
    None,
}

impl Wanted {
    /// The nodes that `job` wants.
    pub(super) fn of(job: &ImagePullJob) -> Self {
        if let Some(pods) = &job.spec.template.pod_selector {
            return read(pods).map_or(Self::None, Self::OfPods);
        }
        let Some(nodes) = &job.spec.template.selector else {
            return Self::All;
        };
        let names = nodes.names.as_deref().unwrap_or_default();
        if !names.is_empty() {
            return Self::Named(names.iter().cloned().collect());
        }
        match has_labels(nodes) {
            true => read(&labels(nodes)).map_or(Self::None, Self::Labelled),
            // OpenKruise selects every node, too, but looks at such a job when something else happens to it.
            false => Self::All,
        }
    }

    /// Whether it is about pods.
    pub(super) fn is_of_pods(&self) -> bool {
        matches!(self, Self::OfPods(_))
    }

    /// Whether it wants the node of a pod that has a node.
    pub(super) fn wants_node_of(&self, pod: &Pod) -> bool {
        match self {
            Self::OfPods(selector) => !pod::node(pod).is_empty() && selector.matches(pod::all_labels(pod)),
            _ => false,
        }
    }

    /// Whether it wants a node; nothing where that depends on the pods there.
    pub(super) fn wants(&self, image: &NodeImage) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::Named(names) => Some(names.contains(&image.name_any())),
            Self::Labelled(selector) => Some(selector.matches(image.labels())),
            Self::OfPods(_) => None,
            Self::None => Some(false),
        }
    }
}

fn has_labels(nodes: &ImageNodeSelector) -> bool {
    let has_any = nodes
        .match_labels
        .as_ref()
        .is_some_and(|labels| !labels.is_empty());
    has_any
        || nodes
            .match_expressions
            .as_ref()
            .is_some_and(|list| !list.is_empty())
}

fn read(selector: &LabelSelector) -> Option<Selector> {
    Selector::try_from(selector.clone()).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The selectors of a job, and whether it wants the node `a` with the label `disk=ssd`.
    #[rstest]
    #[case::none(json!({}), Some(true))]
    #[case::its_name(json!({"selector": {"names": ["a", "b"]}}), Some(true))]
    #[case::other_names(json!({"selector": {"names": ["b"]}}), Some(false))]
    #[case::its_label(json!({"selector": {"matchLabels": {"disk": "ssd"}}}), Some(true))]
    #[case::another_label(json!({"selector": {"matchLabels": {"disk": "hdd"}}}), Some(false))]
    #[case::an_expression(json!({"selector": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}), Some(true))]
    #[case::names_count_before_labels(json!({"selector": {"names": ["a"], "matchLabels": {"disk": "hdd"}}}), Some(true))]
    #[case::a_selector_of_nothing(json!({"selector": {}}), Some(true))]
    #[case::an_operator_that_is_none(
        json!({"selector": {"matchExpressions": [{"key": "disk", "operator": "Like"}]}}), Some(false)
    )]
    #[case::pods(json!({"podSelector": {"matchLabels": {"app": "web"}}}), None)]
    fn nodes(#[case] mut spec: Value, #[case] wanted: Option<bool>) {
        spec["image"] = json!("nginx:1");
        spec["completionPolicy"] = json!({});
        let job: ImagePullJob = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "j"}, "spec": spec,
        }))
        .expect("a job");
        let node: NodeImage = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage",
            "metadata": {"name": "a", "labels": {"disk": "ssd"}}, "spec": {},
        }))
        .expect("a list");
        assert_eq!(Wanted::of(&job).wants(&node), wanted);
    }
}
