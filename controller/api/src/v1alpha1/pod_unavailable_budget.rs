//! PodUnavailableBudget.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many pods may be unavailable at the same time by the deeds of people and controllers.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.kruise.io",
    version = "v1alpha1",
    kind = "PodUnavailableBudget",
    plural = "podunavailablebudgets",
    shortname = "pub",
    namespaced,
    status = "PodUnavailableBudgetStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Allowed","type":"integer","jsonPath":".status.unavailableAllowed"}"#,
    printcolumn = r#"{"name":"Current","type":"integer","jsonPath":".status.currentAvailable"}"#,
    printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".status.desiredAvailable"}"#,
    printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.totalReplicas"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodUnavailableBudgetSpec {
    /// The pods, by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The pods, by their workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<TargetReference>,
    /// How many pods may be unavailable. Percentages round up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many pods must be available. Percentages round up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
}

/// A workload of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// Its group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub api_version: String,
    /// Its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub kind: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub name: String,
}

impl From<&OwnerReference> for TargetReference {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
        }
    }
}

/// How many pods there are, and which of them are on their way out of service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["currentAvailable", "desiredAvailable", "totalReplicas", "unavailableAllowed"]))]
pub struct PodUnavailableBudgetStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default)]
    pub observed_generation: i64,
    /// Pods that may be deleted or evicted, by name, with the time of the permission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Time>>")]
    pub disrupted_pods: BTreeMap<String, Time>,
    /// Pods that may be updated, by name, with the time of the permission.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, Time>>")]
    pub unavailable_pods: BTreeMap<String, Time>,
    /// How many more pods may become unavailable.
    #[serde(default)]
    pub unavailable_allowed: i32,
    /// How many pods are available.
    #[serde(default)]
    pub current_available: i32,
    /// How many pods must be available.
    #[serde(default)]
    pub desired_available: i32,
    /// How many pods there are to be.
    #[serde(default)]
    pub total_replicas: i32,
}
