//! The errors of jobs that pull images, in the words of OpenKruise.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::ImageReference;
use crate::api::v1beta1::{CompletionPolicy, ImageNodeSelector};
use crate::kit::selector;

/// The first error of the selectors of a job.
pub(crate) fn selectors(nodes: Option<&ImageNodeSelector>, pods: Option<&LabelSelector>) -> Option<String> {
    let of_nodes = nodes.and_then(node_selector);
    of_nodes.or_else(|| {
        let pods = pods?;
        if nodes.is_some() {
            return Some("can not set both selector and podSelector".to_owned());
        }
        selector::problem(pods).map(|problem| format!("invalid podSelector: {problem}"))
    })
}

fn node_selector(nodes: &ImageNodeSelector) -> Option<String> {
    let names = nodes.names.as_deref().unwrap_or_default();
    let labels = labels(nodes);
    let has_labels = labels.match_labels.iter().flatten().next().is_some()
        || labels.match_expressions.iter().flatten().next().is_some();
    if has_labels && !names.is_empty() {
        return Some("can not set both names and labelSelector in this spec.selector".to_owned());
    }
    if let Some(problem) = selector::problem(&labels) {
        return Some(format!("invalid selector: {problem}"));
    }
    let is_double = names.iter().collect::<BTreeSet<_>>().len() < names.len();
    is_double.then(|| "duplicated name in selector names".to_owned())
}

/// The part of a selector of nodes that is about labels.
pub(crate) fn labels(nodes: &ImageNodeSelector) -> LabelSelector {
    LabelSelector {
        match_labels: nodes.match_labels.clone(),
        match_expressions: nodes.match_expressions.clone(),
    }
}

/// The error of an image.
pub(crate) fn image(image: &str) -> Option<String> {
    let error = ImageReference::parse(image).err()?;
    Some(format!("invalid image {image}: {error}"))
}

/// The error of a completion policy by itself.
pub(crate) fn completion(policy: &CompletionPolicy) -> Option<String> {
    let has_times = policy.active_deadline_seconds.is_some() || policy.ttl_seconds_after_finished.is_some();
    match policy.kind.as_deref().unwrap_or_default() {
        "Never" if has_times => Some(
            "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"
                .to_owned(),
        ),
        "Always" | "Never" => None,
        kind => Some(format!("unknown type of completionPolicy: {kind}")),
    }
}
