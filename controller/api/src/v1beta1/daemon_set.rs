//! The Advanced DaemonSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::{Lifecycle, is_zero, is_zero_i64, schemaless};

/// The wanted state of a DaemonSet.
///
/// `template` is kept as it came: the server does not look into it, and fields that this release does not know must survive.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "DaemonSet",
    plural = "daemonsets",
    shortname = "daemon",
    shortname = "ads",
    namespaced,
    status = "DaemonSetStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"DESIRED","type":"integer","jsonPath":".status.desiredNumberScheduled"}"#,
    printcolumn = r#"{"name":"CURRENT","type":"integer","jsonPath":".status.currentNumberScheduled"}"#,
    printcolumn = r#"{"name":"READY","type":"integer","jsonPath":".status.numberReady"}"#,
    printcolumn = r#"{"name":"UP-TO-DATE","type":"integer","jsonPath":".status.updatedNumberScheduled"}"#,
    printcolumn = r#"{"name":"AVAILABLE","type":"integer","jsonPath":".status.numberAvailable"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"CONTAINERS","type":"string","jsonPath":".spec.template.spec.containers[*].name","priority":1}"#,
    printcolumn = r#"{"name":"IMAGES","type":"string","jsonPath":".spec.template.spec.containers[*].image","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetSpec {
    /// Which pods count. Must match the template's labels; cannot change.
    pub selector: LabelSelector,
    /// The pod to make on each node, a PodTemplateSpec.
    #[schemars(schema_with = "schemaless")]
    pub template: Value,
    /// How pods are brought to a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<DaemonSetUpdateStrategy>,
    /// For how many seconds a pod must have been ready to count as available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// How many pods are made, and how many are deleted, at a time; a number, or a percentage of the nodes rounded down.
    /// Defaults to 250.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_replicas: Option<IntOrString>,
    /// How many old revisions are kept. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// The hook before deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// How pods are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<DaemonSetScaleStrategy>,
}

/// How a DaemonSet brings its pods to a new revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetUpdateStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The details of a rolling update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdateDaemonSetStrategy>,
}

/// The details of a rolling update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateDaemonSetStrategy {
    /// `Standard` (default) or `InPlaceIfPossible`; `v1alpha1` also takes `Surging`.
    #[serde(
        default,
        rename = "rollingUpdateType",
        skip_serializing_if = "Option::is_none"
    )]
    pub kind: Option<String>,
    /// How many pods may be unavailable; a number, or a percentage of the nodes rounded up. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many nodes may have an old and a new pod at once; a number, or a percentage of the nodes rounded up. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<IntOrString>,
    /// The nodes whose pods are updated. All when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many nodes keep the old revision; a number, or a percentage of the nodes rounded down. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<IntOrString>,
    /// Do not update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// How a DaemonSet adds pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetScaleStrategy {
    /// Whether the partition holds for new pods, too: no more nodes get one than have or may have the new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitioned_scaling: Option<bool>,
}

/// The observed state of a DaemonSet. Fields that Go leaves out when they are zero are left out here too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady", "updatedNumberScheduled"]))]
pub struct DaemonSetStatus {
    /// Nodes that have a pod and are to have one.
    #[serde(default)]
    pub current_number_scheduled: i32,
    /// Nodes that have a pod and are not to have one.
    #[serde(default)]
    pub number_misscheduled: i32,
    /// Nodes that are to have a pod.
    #[serde(default)]
    pub desired_number_scheduled: i32,
    /// Nodes whose pod is ready.
    #[serde(default)]
    pub number_ready: i32,
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// Nodes whose pod has the update revision.
    #[serde(default)]
    pub updated_number_scheduled: i32,
    /// Nodes whose pod is available.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub number_available: i32,
    /// Nodes that are to have a pod and have no available one.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub number_unavailable: i32,
    /// How often a revision's name was taken by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<DaemonSetCondition>>")]
    pub conditions: Vec<DaemonSetCondition>,
    /// The hash of the revision that is rolled out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub update_revision: String,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Since when it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
