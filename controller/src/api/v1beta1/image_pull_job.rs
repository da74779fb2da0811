//! The ImagePullJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompletionPolicy, ImageNodeSelector, PullPolicy, SandboxConfig};

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
    /// The nodes on which it is pulled. All when neither this nor `podSelector` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<ImageNodeSelector>,
    /// The pods on whose nodes it is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// On how many nodes the image is pulled at a time. Defaults to 1; with 0 the job waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<IntOrString>,
    /// How the image is pulled on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,
    /// When the job is over.
    pub completion_policy: CompletionPolicy,
    /// The Secrets for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secrets: Option<Vec<String>>,
    /// Labels and annotations for the container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_config: Option<SandboxConfig>,
    /// `Always` or `IfNotPresent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
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
