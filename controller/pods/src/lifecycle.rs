//! Where in its life a pod is, and the hooks that hold it there.

use jiff::Timestamp;
use kruise_api::labels;
use kruise_api::v1alpha1::LifecycleHook;
use serde_json::{Value, json};

use crate::pod::{self, Pod};

/// The values of the label `lifecycle.apps.kruise.io/state`.
pub mod state {
    /// New, not yet counted as available.
    pub const PREPARING_NORMAL: &str = "PreparingNormal";
    /// In service.
    pub const NORMAL: &str = "Normal";
    /// Held before an update in place.
    pub const PREPARING_UPDATE: &str = "PreparingUpdate";
    /// Being updated in place.
    pub const UPDATING: &str = "Updating";
    /// Held after an update in place.
    pub const UPDATED: &str = "Updated";
    /// Held before deletion.
    pub const PREPARING_DELETE: &str = "PreparingDelete";
}

/// Why a pod is marked not ready, in the message of its condition `KruisePodReady`.
pub const PRE_DELETE_KEY: &str = "preDeleteHook";
/// The same before an update in place.
pub const PRE_UPDATE_KEY: &str = "preUpdateHook";

/// The pod's state; empty when it has none.
pub fn state_of(pod: &Pod) -> &str {
    pod::label(pod, labels::LIFECYCLE_STATE).unwrap_or_default()
}

/// Whether any of the hook's labels or finalizers holds the pod.
pub fn is_hooked(hook: Option<&LifecycleHook>, pod: &Pod) -> bool {
    let Some(hook) = hook else { return false };
    let labels = hook.labels_handler.iter().flatten();
    let finalizers = hook.finalizers_handler.iter().flatten();
    labels
        .into_iter()
        .any(|(key, value)| pod::label(pod, key) == Some(value))
        || finalizers
            .into_iter()
            .any(|finalizer| has_finalizer(pod, finalizer))
}

/// Whether all of the hook's labels and finalizers are on the pod.
pub fn is_all_hooked(hook: &LifecycleHook, pod: &Pod) -> bool {
    hook.labels_handler
        .iter()
        .flatten()
        .all(|(key, value)| pod::label(pod, key) == Some(value))
        && hook
            .finalizers_handler
            .iter()
            .flatten()
            .all(|finalizer| has_finalizer(pod, finalizer))
}

fn has_finalizer(pod: &Pod, finalizer: &str) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|f| f == finalizer)
}

/// The patch of a pod's metadata that brings it to `state`.
pub fn state_patch(state: &str, now: Timestamp) -> Value {
    json!({
        "labels": { labels::LIFECYCLE_STATE: state },
        "annotations": { labels::LIFECYCLE_TIMESTAMP: rfc3339(now) },
    })
}

/// The same, with the hook's labels and finalizers put back on the pod.
pub fn state_patch_with_hook(pod: &Pod, hook: Option<&LifecycleHook>, state: &str, now: Timestamp) -> Value {
    let mut patch = state_patch(state, now);
    let Some(hook) = hook else { return patch };
    if let Some(labels) = patch.get_mut("labels").and_then(Value::as_object_mut) {
        labels.extend(
            hook.labels_handler
                .iter()
                .flatten()
                .map(|(key, value)| (key.clone(), json!(value))),
        );
    }
    let missing: Vec<&String> = hook
        .finalizers_handler
        .iter()
        .flatten()
        .filter(|finalizer| !has_finalizer(pod, finalizer))
        .collect();
    if let (false, Some(patch)) = (missing.is_empty(), patch.as_object_mut()) {
        patch.insert("finalizers".to_owned(), json!(missing));
    }
    patch
}

/// A time as annotations carry it.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::collections::BTreeMap;

    fn pod(label: &[(&str, &str)], finalizers: &[&str]) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.labels = Some(
            label
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        );
        pod.metadata.finalizers = Some(finalizers.iter().map(|f| (*f).to_owned()).collect());
        pod
    }

    #[rstest]
    #[case(&[], &[], false, false)]
    #[case(&[("a", "1")], &[], true, false)]
    #[case(&[("a", "2")], &["x/y"], true, false)]
    #[case(&[("a", "1")], &["x/y"], true, true)]
    fn hooks(
        #[case] label: &[(&str, &str)],
        #[case] finalizers: &[&str],
        #[case] any: bool,
        #[case] all: bool,
    ) {
        let hook = LifecycleHook {
            labels_handler: Some(BTreeMap::from([("a".to_owned(), "1".to_owned())])),
            finalizers_handler: Some(vec!["x/y".to_owned()]),
            mark_pod_not_ready: None,
        };
        let pod = pod(label, finalizers);
        assert_eq!(
            (is_hooked(Some(&hook), &pod), is_all_hooked(&hook, &pod)),
            (any, all)
        );
        assert!(!is_hooked(None, &pod));
    }
}
