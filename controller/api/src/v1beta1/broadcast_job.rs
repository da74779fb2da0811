//! The BroadcastJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::schemaless;

/// The wanted state of a BroadcastJob.
///
/// `template` is kept as it came: the server does not look into it, and fields that this release does not know must survive.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "BroadcastJob",
    plural = "broadcastjobs",
    shortname = "bcj",
    namespaced,
    status = "BroadcastJobStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".status.desired"}"#,
    printcolumn = r#"{"name":"Active","type":"integer","jsonPath":".status.active"}"#,
    printcolumn = r#"{"name":"Succeeded","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.failed"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobSpec {
    /// How many pods may run at a time; a number, or a percentage of the nodes rounded up. No limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<IntOrString>,
    /// The pod to run on each node, a PodTemplateSpec.
    #[schemars(schema_with = "schemaless")]
    pub template: Value,
    /// When the job is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_policy: Option<CompletionPolicy>,
    /// Make no pods for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The effect of a failed pod on the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
}

/// When a job is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionPolicy {
    /// `Always` (default): once each node has had its pod. `Never`: not by itself; nodes that come later get a pod, too.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// For how many seconds the job may run before it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// After how many seconds the job is deleted once it is over. Not at all when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// The effect of a failed pod on its job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// `FailFast` (default): the job fails. `Continue`: nothing. `Pause`: no further pods are made.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How often the containers of a pod may be started anew before the pod counts as failed. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_limit: Option<i32>,
}

/// The observed state of a BroadcastJob. The counts are written when they are zero, too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobStatus {
    /// At most one, once the job is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<JobCondition>>")]
    pub conditions: Vec<JobCondition>,
    /// When the job was first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Pods that neither ended nor failed.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub active: i32,
    /// Pods that ended well.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// Pods that failed.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub failed: i32,
    /// Nodes that are to have had a pod.
    #[serde(default)]
    #[schemars(with = "Option<i32>")]
    pub desired: i32,
    /// `running`, `paused`, `completed` or `failed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub phase: String,
}

/// A condition of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCondition {
    /// `Complete` or `Failed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// Since when it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
