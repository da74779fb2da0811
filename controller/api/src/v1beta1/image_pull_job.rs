//! The ImagePullJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ImagePullJobTemplate;

/// An image to pull on nodes.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "ImagePullJob",
    plural = "imagepulljobs",
    namespaced,
    status = "ImagePullJobStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"TOTAL","type":"integer","jsonPath":".status.desired"}"#,
    printcolumn = r#"{"name":"ACTIVE","type":"integer","jsonPath":".status.active"}"#,
    printcolumn = r#"{"name":"SUCCEED","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"FAILED","type":"integer","jsonPath":".status.failed"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullJobSpec {
    /// The image.
    pub image: String,
    /// Where and how it is pulled.
    #[serde(flatten)]
    pub template: ImagePullJobTemplate,
}

/// The observed state of an ImagePullJob.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["desired"]))]
pub struct ImagePullJobStatus {
    /// When the job began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How many nodes there are.
    #[serde(default)]
    pub desired: i32,
    /// Nodes that pull.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub active: i32,
    /// Nodes that have the image.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// Nodes that have given up.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub failed: i32,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
    /// The names of the nodes that have given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub failed_nodes: Vec<String>,
}
