//! The status of a CloneSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::{is_zero, is_zero_i64};

/// The status of a CloneSet. Fields that Go leaves out when they are zero are left out here too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["availableReplicas", "readyReplicas", "replicas", "updatedReadyReplicas", "updatedReplicas"]))]
pub struct CloneSetStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// Pods that exist and do not terminate.
    #[serde(default)]
    pub replicas: i32,
    /// Pods that are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Pods that have been ready for `minReadySeconds`.
    #[serde(default)]
    pub available_replicas: i32,
    /// Pods of the update revision.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Pods of the update revision that are ready.
    #[serde(default)]
    pub updated_ready_replicas: i32,
    /// Pods of the update revision that are available.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub updated_available_replicas: i32,
    /// How many pods should have the update revision: the replicas less the partition.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub expected_updated_replicas: i32,
    /// The name of the revision that is rolled out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub update_revision: String,
    /// The name of the revision before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub current_revision: String,
    /// How often a revision's name was taken by another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// The conditions, which report failures and the progress of the update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<CloneSetCondition>>")]
    pub conditions: Vec<CloneSetCondition>,
    /// The selector in text form, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub label_selector: String,
}

/// A condition: `FailedScale`, `FailedUpdate` or `Progressing`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneSetCondition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When it was written last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// When its status changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
