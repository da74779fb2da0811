//! The ImageListPullJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ImagePullJobTemplate;

/// Images to pull on nodes.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "ImageListPullJob",
    plural = "imagelistpulljobs",
    namespaced,
    status = "ImageListPullJobStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"TOTAL","type":"integer","jsonPath":".status.desired"}"#,
    printcolumn = r#"{"name":"SUCCEEDED","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"COMPLETED","type":"integer","jsonPath":".status.completed"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ImageListPullJobSpec {
    /// The images.
    pub images: Vec<String>,
    /// Where and how they are pulled.
    #[serde(flatten)]
    pub template: ImagePullJobTemplate,
}

/// The observed state of an ImageListPullJob.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["desired"]))]
pub struct ImageListPullJobStatus {
    /// When the job began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How many images there are.
    #[serde(default)]
    pub desired: i32,
    /// Images that are being pulled.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub active: i32,
    /// Images that were pulled, or not, for good.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub completed: i32,
    /// Images that were pulled on all nodes.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// Images that were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_image_statuses: Option<Vec<FailedImageStatus>>,
}

/// An image that was not pulled on all nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedImageStatus {
    /// The job that pulls this image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_job: Option<String>,
    /// The image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
