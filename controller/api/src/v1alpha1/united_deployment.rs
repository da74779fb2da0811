//! UnitedDeployment.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CloneSetSpec;
use crate::v1beta1::StatefulSetSpec;

/// The wanted state of a UnitedDeployment: a workload for each of several subsets of the nodes.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "UnitedDeployment",
    plural = "uniteddeployments",
    shortname = "ud",
    namespaced,
    status = "UnitedDeploymentStatus",
    derive = "PartialEq",
    derive = "Default",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn = r#"{"name":"DESIRED","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"CURRENT","type":"integer","jsonPath":".status.replicas"}"#,
    printcolumn = r#"{"name":"UPDATED","type":"integer","jsonPath":".status.updatedReplicas"}"#,
    printcolumn = r#"{"name":"READY","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct UnitedDeploymentSpec {
    /// How many pods all subsets have together. May be unset if each subset says how many it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The workloads and pods that belong to it.
    pub selector: LabelSelector,
    /// The workload of each subset.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "Option<SubsetTemplate>")]
    pub template: SubsetTemplate,
    /// The subsets.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "Option<UnitedDeploymentTopology>")]
    pub topology: UnitedDeploymentTopology,
    /// How many pods of each subset keep the old revision.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "Option<UnitedDeploymentUpdateStrategy>")]
    pub update_strategy: UnitedDeploymentUpdateStrategy,
    /// How many revisions are kept. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
}

/// Whether a value is that of an absent field.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The workload of each subset: one of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetTemplate {
    /// A StatefulSet of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set_template: Option<WorkloadTemplate>,
    /// An Advanced StatefulSet in version `v1beta1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AdvancedStatefulSetTemplate>")]
    pub advanced_stateful_set_template: Option<WorkloadTemplate>,
    /// A CloneSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CloneSetTemplate>")]
    pub clone_set_template: Option<WorkloadTemplate>,
    /// A Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_template: Option<WorkloadTemplate>,
}

/// A workload without its name. Both parts are kept as they came.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadTemplate {
    /// Its labels and annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::shared::schemaless")]
    pub metadata: Option<Value>,
    /// Its spec.
    #[schemars(schema_with = "crate::shared::schemaless")]
    pub spec: Value,
}

/// The schema of an Advanced StatefulSet without its name.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema alone")]
struct AdvancedStatefulSetTemplate {
    #[schemars(default, schema_with = "crate::shared::schemaless")]
    metadata: Option<Value>,
    spec: StatefulSetSpec,
}

/// The schema of a CloneSet without its name.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a schema alone")]
struct CloneSetTemplate {
    #[schemars(default, schema_with = "crate::shared::schemaless")]
    metadata: Option<Value>,
    spec: CloneSetSpec,
}

/// The subsets, and how pods move between them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitedDeploymentTopology {
    /// The subsets, in the order in which they are filled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Subset>>")]
    pub subsets: Vec<Subset>,
    /// How pods that get no node move on to other subsets.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "Option<UnitedDeploymentScheduleStrategy>")]
    pub schedule_strategy: UnitedDeploymentScheduleStrategy,
}

/// A subset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct Subset {
    /// Its name. The server's schema requires it.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub name: String,
    /// The nodes that its pods need.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "Option<NodeSelectorTerm>")]
    pub node_selector_term: NodeSelectorTerm,
    /// The taints that its pods tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How many pods it has: a number, or a percentage of all, rounded half up. An unset one shares the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<IntOrString>,
    /// How many pods it gets before any subset gets more than its minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<IntOrString>,
    /// How many pods it has at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<IntOrString>,
    /// A strategic merge patch of its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::shared::schemaless")]
    pub patch: Option<Value>,
}

/// How pods that get no node move on to other subsets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitedDeploymentScheduleStrategy {
    /// `Fixed`, `Adaptive`, or empty for `Fixed`.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "strategy_type")]
    pub kind: String,
    /// The details of `Adaptive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveUnitedDeploymentStrategy>,
}

/// The schema of the strategy's type.
fn strategy_type(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["Adaptive", "Fixed", ""] })
}

/// When pods move on to other subsets, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdaptiveUnitedDeploymentStrategy {
    /// How many seconds a pod may wait for a node. Defaults to 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reschedule_critical_seconds: Option<i32>,
    /// For how many seconds a subset gets no further pods after one has waited too long. Defaults to 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unschedulable_duration: Option<i32>,
    /// Keep the pods that wait, and make others in their place elsewhere until they run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub reserve_unschedulable_pods: bool,
}

/// How many pods of each subset keep the old revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitedDeploymentUpdateStrategy {
    /// `Manual`; anything else means that no pod does.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub kind: String,
    /// The numbers of `Manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual_update: Option<ManualUpdate>,
}

/// How many pods keep the old revision, by subset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManualUpdate {
    /// The numbers. An absent one is 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, i32>>")]
    pub partitions: BTreeMap<String, i32>,
}

/// The observed state of a UnitedDeployment. Fields that Go leaves out when they are zero are left out here too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["currentRevision", "replicas", "updatedReplicas"]))]
pub struct UnitedDeploymentStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub ready_replicas: i32,
    /// Pods, without reserved ones.
    #[serde(default)]
    pub replicas: i32,
    /// Pods of the update revision.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Pods that wait for a node, or have not proven themselves, and stand for nothing yet.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub reserved_pods: i32,
    /// Pods of the update revision that are ready.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub updated_ready_replicas: i32,
    /// Nothing writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// The name of the revision before the one that is rolled out.
    #[serde(default)]
    pub current_revision: String,
    /// How many pods each subset is to have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, i32>>")]
    pub subset_replicas: BTreeMap<String, i32>,
    /// How each subset stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<SubsetStatus>>")]
    pub subset_statuses: Vec<SubsetStatus>,
    /// How the whole stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<UnitedDeploymentCondition>>")]
    pub conditions: Vec<UnitedDeploymentCondition>,
    /// The revision that is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status: Option<UpdateStatus>,
    /// The selector in text form, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub label_selector: String,
}

/// How a subset stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetStatus {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub name: String,
    /// Its pods.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub replicas: i32,
    /// Those that are ready.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub ready_replicas: i32,
    /// How many of them keep the old revision.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub partition: i32,
    /// Those that stand for nothing yet.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero")]
    #[schemars(with = "Option<i32>")]
    pub reserved_pods: i32,
    /// Whether its pods get nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<SubsetCondition>>")]
    pub conditions: Vec<SubsetCondition>,
}

/// A condition of a subset: `Schedulable`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubsetCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// When `status` or `reason` changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
}

/// A condition: `UnitedDeploymentUpdated`, `SubsetProvisioned` or `SubsetUpdated`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitedDeploymentCondition {
    /// Which one.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub kind: String,
    /// `True` or `False`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub status: String,
    /// When `status` changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A word in CamelCase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
}

/// The revision that is rolled out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStatus {
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub updated_revision: String,
    /// How many pods of each subset keep the old revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, i32>>")]
    pub current_partitions: BTreeMap<String, i32>,
}
