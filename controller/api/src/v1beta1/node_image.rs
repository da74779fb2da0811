//! The NodeImage.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SandboxConfig;

/// The images that OpenKruise's daemon pulls on the node of that name.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "NodeImage",
    plural = "nodeimages",
    status = "NodeImageStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"DESIRED","type":"integer","jsonPath":".status.desired"}"#,
    printcolumn = r#"{"name":"PULLING","type":"integer","jsonPath":".status.pulling"}"#,
    printcolumn = r#"{"name":"SUCCEED","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"FAILED","type":"integer","jsonPath":".status.failed"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NodeImageSpec {
    /// The images, by their name without a tag.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, ImageSpec>>")]
    pub images: BTreeMap<String, ImageSpec>,
}

/// The tags of an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSpec {
    /// The Secrets for the registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ReferenceObject>>")]
    pub pull_secrets: Vec<ReferenceObject>,
    /// The tags.
    pub tags: Vec<ImageTagSpec>,
    /// Labels and annotations for the container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_config: Option<SandboxConfig>,
}

/// A Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceObject {
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub namespace: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub name: String,
    /// `batch` for a copy that jobs share.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub mode: String,
}

/// A tag to pull.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagSpec {
    /// The tag, or a digest.
    pub tag: String,
    /// When it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// How it is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<ImageTagPullPolicy>,
    /// The objects that ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ObjectReference>>")]
    pub owner_references: Vec<ObjectReference>,
    /// Counts how often it was asked for again.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i64>")]
    pub version: i64,
    /// `Always` or `IfNotPresent`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub image_pull_policy: String,
}

/// How a tag is pulled, and how long it is kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagPullPolicy {
    /// For how many seconds an attempt may take. Defaults to 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// How many attempts follow the first. Defaults to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<i32>,
    /// For how many seconds the tag stays here after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// For how many seconds all attempts together may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
}

/// The observed state of a NodeImage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["desired"]))]
pub struct NodeImageStatus {
    /// How many tags there are.
    #[serde(default)]
    pub desired: i32,
    /// Tags that are on the node.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// Tags that are not, for good.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub failed: i32,
    /// Tags that are being pulled.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub pulling: i32,
    /// Tags whose turn has not come yet.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub waiting: i32,
    /// The tags, by the image's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, ImageStatus>>")]
    pub image_statuses: BTreeMap<String, ImageStatus>,
    /// Written by older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sync_status: Option<SyncStatus>,
}

/// The observed tags of an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageStatus {
    /// The tags.
    pub tags: Vec<ImageTagStatus>,
}

/// The observed state of a tag.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagStatus {
    /// The tag.
    pub tag: String,
    /// `Waiting`, `Pulling`, `Succeeded`, `Failed`.
    pub phase: String,
    /// In percent.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    #[schemars(with = "Option<i32>")]
    pub progress: i32,
    /// When pulling began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The version of the tag that this is about.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i64>")]
    pub version: i64,
    /// The image's name and the runtime's id of it.
    #[serde(rename = "imageID", default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub image_id: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
}

/// The state of the first synchronisation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    /// When it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_at: Option<Time>,
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn is_zero(version: &i64) -> bool {
    *version == 0
}

fn is_none_yet(progress: &i32) -> bool {
    *progress == 0
}

impl NodeImage {
    /// A tag that the node is asked for.
    pub fn tag(&self, image: &str, tag: &str) -> Option<&ImageTagSpec> {
        let image = self.spec.images.get(image)?;
        image.tags.iter().find(|spec| spec.tag == tag)
    }

    /// The state of a tag, whatever version it is about.
    pub fn tag_status(&self, image: &str, tag: &str) -> Option<&ImageTagStatus> {
        let image = self.status.as_ref()?.image_statuses.get(image)?;
        image.tags.iter().find(|status| status.tag == tag)
    }
}
