//! The AdvancedCronJob.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BroadcastJobSpec, ImageListPullJobSpec};
use crate::shared::schemaless;

/// The wanted state of an AdvancedCronJob: jobs by the clock.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "AdvancedCronJob",
    plural = "advancedcronjobs",
    shortname = "acj",
    namespaced,
    status = "AdvancedCronJobStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Schedule","type":"string","jsonPath":".spec.schedule"}"#,
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".status.type"}"#,
    printcolumn = r#"{"name":"LastScheduleTime","type":"date","jsonPath":".status.lastScheduleTime"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AdvancedCronJobSpec {
    /// When jobs begin, as cron writes it.
    #[schemars(length(min = 0))]
    pub schedule: String,
    /// The time zone of the schedule. UTC when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How many seconds late a job may begin. Any number when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,
    /// The policy while an earlier job is active: `Allow` (default), `Forbid` or `Replace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Allow", "Forbid", "Replace"]))]
    pub concurrency_policy: Option<String>,
    /// Make no jobs for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// How many jobs that ended well are kept. Defaults to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many jobs that failed are kept. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
    /// The job to make.
    pub template: CronJobTemplate,
}

/// The job to make: one of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronJobTemplate {
    /// A Job, as the API server's own CronJobs have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemaless")]
    pub job_template: Option<Value>,
    /// A BroadcastJob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast_job_template: Option<BroadcastJobTemplate>,
    /// An ImageListPullJob. `v1alpha1` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_list_pull_job_template: Option<ImageListPullJobTemplate>,
}

/// The BroadcastJob to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastJobTemplate {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "metadata")]
    pub metadata: Option<Value>,
    /// Its spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<BroadcastJobSpec>,
}

/// The ImageListPullJob to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageListPullJobTemplate {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "metadata")]
    pub metadata: Option<Value>,
    /// Its spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ImageListPullJobSpec>,
}

/// The schema of metadata, of which the server looks at nothing.
fn metadata(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object" })
}

/// The observed state of an AdvancedCronJob.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvancedCronJobStatus {
    /// The kind of the jobs: `Job`, `BroadcastJob` or `ImageListPullJob`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The jobs that are not over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ObjectReference>>")]
    pub active: Vec<ObjectReference>,
    /// The time for which the last job was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
}
