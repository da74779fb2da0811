//! The EphemeralJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::schemaless;
use crate::v1beta1::JobCondition;

/// The wanted state of an EphemeralJob: ephemeral containers for pods that run.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "EphemeralJob",
    plural = "ephemeraljobs",
    shortname = "ejob",
    namespaced,
    status = "EphemeralJobStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"STATUS","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"MATCH","type":"integer","jsonPath":".status.match"}"#,
    printcolumn = r#"{"name":"SUCCEED","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"FAILED","type":"integer","jsonPath":".status.failed"}"#,
    printcolumn = r#"{"name":"RUNNING","type":"integer","jsonPath":".status.running"}"#,
    printcolumn = r#"{"name":"WAITING","type":"integer","jsonPath":".status.waiting"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralJobSpec {
    /// The pods.
    pub selector: LabelSelector,
    /// How many of them get the containers. All when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// In how many of them the containers run at a time. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
    /// The containers.
    pub template: EphemeralContainerTemplate,
    /// Give no pod the containers for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// For how many seconds the job may run before it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// After how many seconds the job is deleted once it is over. Defaults to 1800.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// Ephemeral containers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralContainerTemplate {
    /// A list of EphemeralContainers, kept as it came.
    #[schemars(schema_with = "schemaless")]
    pub ephemeral_containers: Value,
}

/// The observed state of an EphemeralJob. The counts are written when they are zero, too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralJobStatus {
    /// The conditions, which report the outcome of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<JobCondition>>")]
    pub conditions: Vec<JobCondition>,
    /// When the job was first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// `Waiting`, `Running`, `Succeeded`, `Failed`, `Paused`, `Error` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub phase: String,
    /// Pods that are meant.
    #[serde(default, rename = "match")]
    #[schemars(with = "Option<i32>")]
    pub matched: i32,
    /// Pods in which a container runs.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub running: i32,
    /// Pods in which all containers ended well.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// Pods in which a container waits to start.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub waiting: i32,
    /// Pods in which a container failed.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub failed: i32,
}
