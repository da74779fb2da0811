//! WorkloadSpread.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PreferredSchedulingTerm, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TargetReference;

/// The subsets over which the pods of a workload are spread.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "WorkloadSpread",
    plural = "workloadspreads",
    shortname = "ws",
    namespaced,
    status = "WorkloadSpreadStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"WorkloadName","type":"string","jsonPath":".spec.targetRef.name"}"#,
    printcolumn = r#"{"name":"WorkloadKind","type":"string","jsonPath":".spec.targetRef.kind"}"#,
    printcolumn = r#"{"name":"Adaptive","type":"boolean","jsonPath":".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["subsets", "targetRef"]))]
pub struct WorkloadSpreadSpec {
    /// The workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "target")]
    pub target_ref: Option<TargetReference>,
    /// Which of the workload's pods count, and where it says how many there are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_filter: Option<TargetFilter>,
    /// The subsets, in the order in which they are filled.
    #[serde(default)]
    pub subsets: Vec<WorkloadSpreadSubset>,
    /// The strategy when a subset has no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_strategy: Option<WorkloadSpreadScheduleStrategy>,
}

/// The schema of the reference, all of whose parts are required.
fn target(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "properties": { "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "name": { "type": "string" } },
        "required": ["apiVersion", "kind", "name"],
    })
}

/// Which of a workload's pods count, and where it says how many there are to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetFilter {
    /// The pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The paths of numbers whose sum it is, such as `spec.tasks.0.replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas_path_list: Option<Vec<String>>,
}

/// A subset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpreadSubset {
    /// Its name.
    pub name: String,
    /// The nodes that its pods need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_node_selector_term: Option<NodeSelectorTerm>,
    /// The nodes that its pods prefer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_node_selector_terms: Option<Vec<PreferredSchedulingTerm>>,
    /// The taints that its pods tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How many pods it has at most. Percentages round up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::shared::schemaless")]
    pub patch: Option<Value>,
}

/// The strategy when a subset has no room.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpreadScheduleStrategy {
    /// `Fixed` or `Adaptive`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "strategy_type")]
    pub kind: Option<String>,
    /// How pods move on to other subsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveWorkloadSpreadStrategy>,
}

/// The schema of the strategy's type.
fn strategy_type(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Adaptive", "Fixed", ""] })
}

/// How pods move on to other subsets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdaptiveWorkloadSpreadStrategy {
    /// Nothing reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_simulation_schedule: Option<bool>,
    /// How long a pod may wait for a node before it is deleted, and its subset left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_critical_seconds: Option<i32>,
}

/// How the pods are spread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpreadStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// The subsets, over all versions of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<WorkloadSpreadSubsetStatus>>")]
    pub subset_statuses: Vec<WorkloadSpreadSubsetStatus>,
    /// The subsets by version of the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Vec<WorkloadSpreadSubsetStatus>>>")]
    pub versioned_subset_statuses: BTreeMap<String, Vec<WorkloadSpreadSubsetStatus>>,
}

/// How many pods a subset has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["missingReplicas", "name", "replicas"]))]
pub struct WorkloadSpreadSubsetStatus {
    /// The subset's name.
    #[serde(default)]
    pub name: String,
    /// Whether pods get nodes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<WorkloadSpreadSubsetCondition>>")]
    pub conditions: Vec<WorkloadSpreadSubsetCondition>,
    /// How many pods it has.
    #[serde(default)]
    pub replicas: i32,
    /// How many more pods it takes; −1 for any number.
    #[serde(default)]
    pub missing_replicas: i32,
    /// Pods that are being created in it, by name or uid, with the time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Time>>")]
    pub creating_pods: BTreeMap<String, Time>,
    /// Pods that are being deleted from it, by name, with the time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Time>>")]
    pub deleting_pods: BTreeMap<String, Time>,
}

/// A condition of a subset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpreadSubsetCondition {
    /// `Schedulable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// When `status` changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Always absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Always absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
