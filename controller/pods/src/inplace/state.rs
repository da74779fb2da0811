//! The record of an update in place in the annotations of a pod. Field order and omissions are Go's.

use std::collections::BTreeMap;

use kruise_api::labels;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::resize::Resources;
use crate::pod::{self, Pod};
use crate::template::go_escape;

/// How far an update in place is (`apps.kruise.io/inplace-update-state`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateState {
    /// The revision the pod is updated to.
    pub revision: String,
    /// When the update began, RFC 3339 in whole seconds.
    pub update_timestamp: String,
    /// The images that ran before, of the containers that get another.
    pub last_container_statuses: Option<BTreeMap<String, ContainerImage>>,
    /// Whether a container has environment variables from labels or annotations that change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_env_from_metadata: bool,
    /// Whether the resources of containers change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_resources: bool,
    /// Whether images change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_images: bool,
    /// Images of later batches, by container.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub next_container_images: BTreeMap<String, String>,
    /// Labels and annotations of later batches, by container.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub next_container_ref_metadata: BTreeMap<String, RefMetadata>,
    /// The resources of containers of later batches.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub next_container_resources: BTreeMap<String, Resources>,
    /// The conditions of the next batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_check_before_next: Option<PreCheck>,
    /// The batches so far.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub container_batches_record: Vec<Batch>,
}

impl UpdateState {
    /// Whether there are later batches.
    pub fn has_next(&self) -> bool {
        !self.next_container_images.is_empty()
            || !self.next_container_ref_metadata.is_empty()
            || !self.next_container_resources.is_empty()
    }
}

/// The image a container ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerImage {
    /// As the kubelet reported it.
    #[serde(rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
}

/// Labels and annotations that a container's environment refers to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefMetadata {
    /// Go writes this field of its ObjectMeta always.
    #[serde(rename = "creationTimestamp")]
    pub creation_timestamp: Option<String>,
    /// Their new values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Their new values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The conditions of the next batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreCheck {
    /// Containers that must be ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers_required_ready: Vec<String>,
}

/// Containers that were changed together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Batch {
    /// When, RFC 3339 in whole seconds.
    pub timestamp: String,
    /// Their names, sorted.
    pub containers: Vec<String>,
}

/// A change that waits for its grace period (`apps.kruise.io/inplace-update-grace`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Change {
    /// The revision it leads to.
    pub revision: String,
    /// New images by container.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub container_images: BTreeMap<String, String>,
    /// The new resources of containers, where those change.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub container_resources: BTreeMap<String, Resources>,
    /// New labels and annotations that a container's environment refers to.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub container_ref_metadata: BTreeMap<String, RefMetadata>,
    /// A strategic merge patch of the pod's metadata; in the annotation, JSON in base64 as Go writes bytes.
    #[serde(
        rename = "metaDataPatch",
        skip_serializing_if = "Option::is_none",
        with = "base64_json"
    )]
    pub metadata_patch: Option<Value>,
    /// Whether environment variables from labels or annotations change.
    #[serde(skip_serializing_if = "is_false")]
    pub update_env_from_metadata: bool,
    /// How long to wait.
    #[serde(skip_serializing_if = "is_zero")]
    pub grace_seconds: i32,
}

/// The update's state, if the pod has one; an error's text when it cannot be read.
pub fn update_state(pod: &Pod) -> Option<Result<UpdateState, String>> {
    let text = pod::annotation(pod, labels::IN_PLACE_STATE)
        .or_else(|| pod::annotation(pod, labels::IN_PLACE_STATE_OLD))?;
    Some(serde_json::from_str(text).map_err(|error| error.to_string()))
}

/// The change that waits, if the pod has one.
pub fn waiting_change(pod: &Pod) -> Option<Result<Change, String>> {
    let text = pod::annotation(pod, labels::IN_PLACE_GRACE)
        .or_else(|| pod::annotation(pod, labels::IN_PLACE_GRACE_OLD))
        .filter(|text| !text.is_empty())?;
    Some(serde_json::from_str(text).map_err(|error| error.to_string()))
}

/// The text of an annotation.
pub fn annotation(value: &impl Serialize) -> String {
    go_escape(serde_json::to_string(value).unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Go encodes bytes in base64.
mod base64_json {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_str(&STANDARD.encode(crate::template::to_go_json(value))),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde::de::DeserializeOwned;

    /// Texts recorded from OpenKruise 1.5.0 are read and written as they are.
    fn check<T: Serialize + DeserializeOwned>(text: &str) {
        assert_eq!(annotation(&serde_json::from_str::<T>(text).unwrap()), text);
    }

    #[rstest]
    #[case(r#"{"revision":"sample-86485c58d4","updateTimestamp":"2026-11-20T11:31:14Z","lastContainerStatuses":null}"#)]
    #[case(r#"{"revision":"cs-demo-7cb9c88699","updateTimestamp":"2026-11-20T11:35:30Z","lastContainerStatuses":{"nginx":{"imageID":"docker.io/library/nginx@sha256:c92f"}},"containerBatchesRecord":[{"timestamp":"2026-11-20T11:35:30Z","containers":["nginx"]}]}"#)]
    #[case(r#"{"revision":"sample-6c658f48f9","updateTimestamp":"2026-11-20T11:35:14Z","lastContainerStatuses":null,"updateEnvFromMetadata":true,"containerBatchesRecord":[{"timestamp":"2026-11-20T11:35:14Z","containers":["main"]}]}"#)]
    fn states(#[case] text: &str) {
        check::<UpdateState>(text);
    }

    #[rstest]
    #[case(r#"{"revision":"sample-86485c58d4","containerImages":{"main":"openkruise/guestbook:v2"},"graceSeconds":1}"#)]
    #[case(r#"{"revision":"x","metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsiYSI6IjEifX19"}"#)]
    fn changes(#[case] text: &str) {
        check::<Change>(text);
    }
}
