//! The revision of a set that a new pod gets.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::hash;
use super::selection::{Labels, selects};
use crate::api::labels;
use crate::api::v1beta1::{SidecarSet, SidecarSetInjectRevision, SidecarSetSpec};

/// The fields of a set's spec that its revisions keep.
pub(crate) const KEPT: [&str; 5] = [
    "containers",
    "imagePullSecrets",
    "initContainers",
    "patchPodMetadata",
    "volumes",
];

/// The data of a revision: a patch that replaces the fields that revisions keep. Absent ones are null.
pub(crate) fn data_of(spec: &SidecarSetSpec) -> Value {
    let spec = serde_json::to_value(spec).unwrap_or_default();
    let mut kept = json!({ "$patch": "replace" });
    for field in KEPT {
        kept[field] = spec.get(field).cloned().unwrap_or_default();
    }
    json!({ "spec": kept })
}

/// The set's own custom version.
pub(crate) fn custom_version(set: &SidecarSet) -> Option<&str> {
    // The label says it in version `v1alpha1`.
    let label = || set.metadata.labels.as_ref()?.get(labels::SIDECARS_CUSTOM_VERSION);
    let version = set.spec.custom_version.as_ref().or_else(label)?;
    Some(version.as_str()).filter(|version| !version.is_empty())
}

/// The revision that a new pod with these labels gets instead of the set as it is. `percent` draws a number from 1 to 100.
///
/// # Errors
/// The text of a selector or a percentage that cannot be read.
pub(crate) fn wanted<'a>(
    set: &'a SidecarSet,
    pod: &Labels,
    percent: impl FnOnce() -> u64,
) -> Result<Option<&'a SidecarSetInjectRevision>, String> {
    let injection = set.spec.injection_strategy.as_ref();
    let Some(revision) = injection.and_then(|injection| injection.revision.as_ref()) else {
        return Ok(None);
    };
    let update = set.spec.update_strategy.as_ref();
    let is_paused = update.is_some_and(|update| update.paused == Some(true));
    if is_paused || revision.policy.as_deref() != Some("Partial") {
        return Ok(Some(revision));
    }
    let selector = update.and_then(|update| update.selector.as_ref());
    if let Some(selector) = selector
        && !selects(selector, pod)?
    {
        return Ok(Some(revision));
    }
    // A number never has an old revision injected.
    let Some(IntOrString::String(text)) = update.and_then(|update| update.partition.as_ref()) else {
        return Ok(None);
    };
    let number = text
        .strip_suffix('%')
        .and_then(|digits| digits.parse::<u64>().ok());
    let number = number.ok_or_else(|| format!("the partition {text:?} is no percentage"))?;
    Ok((percent() <= number).then_some(revision))
}

/// The set as it was in a revision: of this name, with this data and these annotations.
///
/// # Errors
/// The decoder's text when the data is none of a set.
pub(crate) fn of_revision(
    set: &SidecarSet,
    name: &str,
    data: &Value,
    annotations: Option<&Labels>,
) -> Result<SidecarSet, String> {
    let mut spec = serde_json::to_value(&set.spec).map_err(|error| error.to_string())?;
    for field in KEPT {
        spec[field] = data
            .pointer(&format!("/spec/{field}"))
            .cloned()
            .unwrap_or_default();
    }
    let mut old = set.clone();
    old.spec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    let kept = |key: &str| annotations.and_then(|annotations| annotations.get(key)).cloned();
    for (key, with_images) in hash::KEYS {
        let value = kept(key).unwrap_or_else(|| hash::of_spec(&old.spec, with_images));
        let annotations = old.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value);
    }
    old.status.get_or_insert_default().latest_revision = name.to_owned();
    Ok(old)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::pods::revision;

    fn set(spec: Value) -> SidecarSet {
        SidecarSet::new("s", serde_json::from_value(spec).unwrap())
    }

    #[rstest]
    #[case::no_revision(json!({}), 1, Ok(false))]
    #[case::always(json!({ "injectionStrategy": { "revision": { "revisionName": "r" } }, "updateStrategy": { "partition": 0 } }), 1, Ok(true))]
    #[case::partial_number(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": 3 } }), 1, Ok(false))]
    #[case::partial_nothing(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } } }), 1, Ok(false))]
    #[case::partial_all(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": "100%" } }), 100, Ok(true))]
    #[case::partial_none(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": "0%" } }), 1, Ok(false))]
    #[case::partial_lucky(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": "30%" } }), 31, Ok(false))]
    #[case::partial_unlucky(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": "30%" } }), 30, Ok(true))]
    #[case::partial_paused(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "paused": true } }), 1, Ok(true))]
    #[case::partial_not_selected(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "selector": { "matchLabels": { "canary": "yes" } } } }), 1, Ok(true))]
    #[case::partial_selected(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "selector": { "matchLabels": { "app": "x" } } } }), 1, Ok(false))]
    #[case::bad_percentage(json!({ "injectionStrategy": { "revision": { "revisionName": "r", "policy": "Partial" } }, "updateStrategy": { "partition": "abc" } }), 1, Err(()))]
    fn revisions_of_new_pods(#[case] spec: Value, #[case] drawn: u64, #[case] want: Result<bool, ()>) {
        let pod = Labels::from([("app".to_owned(), "x".to_owned())]);
        let set = set(spec);
        let got = wanted(&set, &pod, || drawn).map(|revision| revision.is_some());
        assert_eq!(got.map_err(drop), want);
    }

    /// Hashes of revisions that OpenKruise 1.9.0 made.
    #[rstest]
    #[case("busybox:1.36", "6ffd76679f")]
    #[case("busybox:1.35", "fc496bd96")]
    #[case("busybox:1.34", "5d59b99db9")]
    fn revisions_have_the_recorded_hashes(#[case] image: &str, #[case] want: &str) {
        let side = json!({ "command": ["sh", "-c", "trap exit TERM; while true; do sleep 1; done"], "image": image,
            "imagePullPolicy": "IfNotPresent", "name": "side", "podInjectPolicy": "BeforeAppContainer", "resources": {},
            "shareVolumePolicy": { "type": "disabled" }, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "upgradeStrategy": { "upgradeType": "ColdUpgrade" } });
        let data = data_of(&set(json!({ "containers": [side] })).spec);
        assert_eq!(revision::hash(&data, 0), want);
    }

    #[test]
    fn a_revision_replaces_what_it_keeps() {
        let now = set(
            json!({ "containers": [{ "name": "b" }], "volumes": [{ "name": "v" }], "revisionHistoryLimit": 3 }),
        );
        let before = set(
            json!({ "containers": [{ "name": "a" }], "patchPodMetadata": [{ "annotations": { "k": "1" } }] }),
        );
        let old = of_revision(&now, "s-1", &data_of(&before.spec), None).unwrap();
        assert_eq!(old.spec.containers, before.spec.containers);
        assert_eq!(
            (old.spec.volumes.clone(), old.spec.revision_history_limit),
            (None, Some(3))
        );
        assert_eq!(old.spec.patch_pod_metadata, before.spec.patch_pod_metadata);
        assert_eq!(hash::full(&old), hash::of_spec(&before.spec, true));
        assert_eq!(old.status.unwrap().latest_revision, "s-1");
        let annotations = Labels::from([(labels::SIDECARS_HASH.to_owned(), "kept".to_owned())]);
        let old = of_revision(&now, "s-1", &data_of(&before.spec), Some(&annotations)).unwrap();
        assert_eq!(hash::full(&old), "kept");
    }
}
