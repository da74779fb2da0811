//! Conflicts between sets that may select the same pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt as _;
use pod_rules::FieldError;
use serde_json::Value;

use super::overlap::may_overlap;
use crate::api::v1beta1::{SidecarContainer, SidecarSet, SidecarSetSpec};

/// Everything in which a set conflicts with others.
pub(super) fn errors(name: &str, spec: &SidecarSetSpec, others: &[Arc<SidecarSet>]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let others = others.iter().filter(|other| other.name_any() != name);
    for other in others.filter(|other| share_pods(spec, &other.spec)) {
        let other_name = other.name_any();
        for (own, others) in [
            (spec.inits(), other.spec.inits()),
            (spec.sidecars(), other.spec.sidecars()),
        ] {
            let taken: BTreeSet<&str> = others.iter().map(SidecarContainer::name).collect();
            for name in own
                .iter()
                .map(SidecarContainer::name)
                .filter(|name| taken.contains(name))
            {
                let detail = format!("container {name} already exist in {other_name}");
                errors.push(FieldError::invalid("spec.containers", name, detail));
            }
        }
        errors.extend(volumes(spec, &other.spec, &other_name));
        errors.extend(annotations(spec, &other.spec, &other_name));
    }
    errors
}

/// Whether a pod may be selected by both sets.
fn share_pods(one: &SidecarSetSpec, other: &SidecarSetSpec) -> bool {
    let overlap = |one: Option<&_>, other: Option<&_>| match (one, other) {
        (Some(one), Some(other)) => may_overlap(one, other),
        _ => true,
    };
    overlap(one.namespace_selector.as_ref(), other.namespace_selector.as_ref())
        && overlap(one.selector.as_ref(), other.selector.as_ref())
}

fn volumes(spec: &SidecarSetSpec, other: &SidecarSetSpec, other_name: &str) -> Vec<FieldError> {
    let name = |volume: &Value| {
        volume
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let clashes = |volume: &&Value| {
        let same = other.volume_list().iter().find(|same| name(same) == name(volume));
        same.is_some_and(|same| same != *volume)
    };
    let own = spec.volume_list().iter().filter(clashes);
    own.map(|volume| {
        let name = name(volume);
        let detail = format!("volume {name} is in conflict with sidecarset {other_name}");
        FieldError::invalid("spec.volumes", name, detail)
    })
    .collect()
}

/// The keys that a set does not only fill in, and whether it overwrites them.
fn written_keys(spec: &SidecarSetSpec) -> Vec<(&str, bool)> {
    let patches = spec.patches().iter();
    let patches =
        patches.filter(|patch| !matches!(patch.patch_policy.as_deref(), None | Some("Retain" | "")));
    patches
        .flat_map(|patch| {
            let overwrites = patch.patch_policy.as_deref() == Some("Overwrite");
            let keys = patch.annotations.iter().flatten();
            keys.map(move |(key, _)| (key.as_str(), overwrites))
        })
        .collect()
}

fn annotations(spec: &SidecarSetSpec, other: &SidecarSetSpec, other_name: &str) -> Vec<FieldError> {
    let others = written_keys(other);
    let clashes = |(key, overwrites): &(&str, bool)| {
        others
            .iter()
            .any(|(other, also)| other == key && (*overwrites || *also))
    };
    written_keys(spec)
        .into_iter()
        .filter(clashes)
        .map(|(key, _)| {
            let detail = format!("annotation {key} is in conflict with sidecarset {other_name}");
            FieldError::invalid("spec.patchPodMetadata", key, detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(mut own: Value) -> SidecarSetSpec {
        own["selector"] = json!({ "matchLabels": { "app": "x" } });
        serde_json::from_value(own).unwrap()
    }

    #[rstest]
    #[case::same_container(json!({ "containers": [{ "name": "a" }] }), json!({ "containers": [{ "name": "a" }] }),
        &[r#"spec.containers: Invalid value: "a": container a already exist in other"#])]
    #[case::same_init(json!({ "initContainers": [{ "name": "a" }] }), json!({ "initContainers": [{ "name": "a" }] }),
        &[r#"spec.containers: Invalid value: "a": container a already exist in other"#])]
    #[case::init_and_container(json!({ "initContainers": [{ "name": "a" }] }), json!({ "containers": [{ "name": "a" }] }), &[])]
    #[case::same_volume(json!({ "volumes": [{ "name": "v", "emptyDir": {} }] }), json!({ "volumes": [{ "name": "v", "emptyDir": {} }] }), &[])]
    #[case::other_volume(json!({ "volumes": [{ "name": "v", "emptyDir": {} }] }), json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/" } }] }),
        &[r#"spec.volumes: Invalid value: "v": volume v is in conflict with sidecarset other"#])]
    #[case::overwritten(json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "Overwrite" }] }),
        json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "MergePatchJson" }] }),
        &[r#"spec.patchPodMetadata: Invalid value: "k": annotation k is in conflict with sidecarset other"#])]
    #[case::merged_by_both(json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "MergePatchJson" }] }),
        json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "MergePatchJson" }] }), &[])]
    #[case::retained(json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "Retain" }] }),
        json!({ "patchPodMetadata": [{ "annotations": { "k": "1" }, "patchPolicy": "Overwrite" }] }), &[])]
    #[case::other_namespaces(
        json!({ "containers": [{ "name": "a" }], "namespaceSelector": { "matchLabels": { "n": "1" } } }),
        json!({ "containers": [{ "name": "a" }], "namespaceSelector": { "matchLabels": { "n": "2" } } }), &[])]
    #[case::everywhere_and_somewhere(
        json!({ "containers": [{ "name": "a" }] }),
        json!({ "containers": [{ "name": "a" }], "namespaceSelector": { "matchLabels": { "n": "2" } } }),
        &[r#"spec.containers: Invalid value: "a": container a already exist in other"#])]
    fn sets(#[case] own: Value, #[case] other: Value, #[case] want: &[&str]) {
        let other = Arc::new(SidecarSet::new("other", spec(other)));
        let (own_spec, others) = (spec(own), [other]);
        let texts: Vec<String> = errors("own", &own_spec, &others)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, want);
        assert!(errors("other", &own_spec, &others).is_empty(), "the set itself");
    }
}
