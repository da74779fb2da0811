//! The Advanced StatefulSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::{
    InPlaceUpdateStrategy, Lifecycle, UpdatePriorityStrategy, is_zero, is_zero_i64, schemaless,
};

/// The wanted state of a StatefulSet.
///
/// `template` and `volumeClaimTemplates` are kept as they came: the server does not look into them, and fields that this
/// release does not know must survive.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "StatefulSet",
    plural = "statefulsets",
    shortname = "sts",
    shortname = "asts",
    namespaced,
    status = "StatefulSetStatus",
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
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"CONTAINERS","type":"string","jsonPath":".spec.template.spec.containers[*].name","priority":1}"#,
    printcolumn = r#"{"name":"IMAGES","type":"string","jsonPath":".spec.template.spec.containers[*].image","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// How many pods. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Which pods count. Must match the template's labels; cannot change.
    pub selector: LabelSelector,
    /// The pod to make, a PodTemplateSpec.
    #[schemars(schema_with = "schemaless")]
    pub template: Value,
    /// The claims of each pod, a list of PersistentVolumeClaims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemaless")]
    pub volume_claim_templates: Option<Value>,
    /// How claims follow their templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim_update_strategy: Option<StatefulSetClaimUpdateStrategy>,
    /// The Service that gives the pods their names in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// `OrderedReady` (default): one pod after the other; or `Parallel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_management_policy: Option<String>,
    /// How pods are brought to a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<StatefulSetUpdateStrategy>,
    /// How many revisions that no pod runs are kept. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Ordinals that no pod gets: numbers, and ranges such as `3-5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve_ordinals: Option<Vec<IntOrString>>,
    /// Hooks before deletion, around updates in place, and before a pod counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// How pods are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<StatefulSetScaleStrategy>,
    /// Whether claims go with their pod or with the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<StatefulSetClaimRetentionPolicy>,
    /// Where the ordinals begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinals: Option<StatefulSetOrdinals>,
}

impl StatefulSetSpec {
    /// The templates of claims, or none where the field does not hold a list.
    #[must_use]
    pub fn claim_templates(&self) -> &[Value] {
        self.volume_claim_templates
            .as_ref()
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

/// How claims follow their templates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatefulSetClaimUpdateStrategy {
    /// `OnDelete`: only new claims do. `OnPodRollingUpdate`: claims grow before their pod is updated.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How a StatefulSet brings its pods to a new revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetUpdateStrategy {
    /// `RollingUpdate` (default) or `OnDelete`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The details of a rolling update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdateStatefulSetStrategy>,
}

/// The details of a rolling update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateStatefulSetStrategy {
    /// How many pods keep the old revision. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// How many pods may be unavailable; a number, or a percentage of the replicas rounded down, but at least 1. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// `ReCreate` (default), `InPlaceIfPossible` or `InPlaceOnly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_update_policy: Option<String>,
    /// Do not update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Update in another order than that of the ordinals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unordered_update: Option<UnorderedUpdateStrategy>,
    /// Details of updates in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_update_strategy: Option<InPlaceUpdateStrategy>,
    /// For how many seconds a pod must have been ready to count as available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
}

/// An update in another order than that of the ordinals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnorderedUpdateStrategy {
    /// Which pods first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_strategy: Option<UpdatePriorityStrategy>,
}

/// How a StatefulSet adds pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetScaleStrategy {
    /// How many pods may be unavailable while pods are added; a number, or a percentage of the replicas rounded down, but at
    /// least 1. No limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
}

/// Whether claims go with their pod or with the set: `Retain` (default) or `Delete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetClaimRetentionPolicy {
    /// When the set is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_deleted: Option<String>,
    /// When the pod is deleted because there are fewer replicas, or its ordinal is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_scaled: Option<String>,
}

/// Where the ordinals begin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatefulSetOrdinals {
    /// The first ordinal. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<i32>,
}

/// The observed state of a StatefulSet. Fields that Go leaves out when they are zero are left out here too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"]))]
pub struct StatefulSetStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// Pods that a node or the scheduler knows.
    #[serde(default)]
    pub replicas: i32,
    /// Pods that are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds`.
    #[serde(default)]
    pub available_replicas: i32,
    /// Pods of the current revision.
    #[serde(default)]
    pub current_replicas: i32,
    /// Pods of the update revision.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Pods of the update revision that are ready.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub updated_ready_replicas: i32,
    /// Pods of the update revision that are available.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub updated_available_replicas: i32,
    /// The name of the revision before the one that is rolled out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub current_revision: String,
    /// The name of the revision that is rolled out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub update_revision: String,
    /// How often a revision's name was taken by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// The conditions, which report failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<StatefulSetCondition>>")]
    pub conditions: Vec<StatefulSetCondition>,
    /// The selector in text form, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub label_selector: String,
    /// How many claims of each template are as the template says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<VolumeClaimStatus>>")]
    pub volume_claims: Vec<VolumeClaimStatus>,
}

/// A condition: `FailedCreatePod` or `FailedUpdatePod`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`.
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

/// How many claims of a template are as the template says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaimStatus {
    /// The template's name.
    pub volume_claim_name: String,
    /// Claims that ask for as much as the template.
    pub compatible_replicas: i32,
    /// Those of them that have it.
    pub compatible_ready_replicas: i32,
}
