//! ResourceDistribution.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::is_zero;

/// The object that is copied, and the namespaces that it is copied into.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ResourceDistribution",
    plural = "resourcedistributions",
    shortname = "distributor",
    status = "ResourceDistributionStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"TOTAL","type":"integer","jsonPath":".status.desired"}"#,
    printcolumn = r#"{"name":"SUCCEED","type":"integer","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"FAILED","type":"integer","jsonPath":".status.failed"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionSpec {
    /// The object to copy: a Secret or a ConfigMap, kept as it came.
    #[schemars(schema_with = "embedded")]
    pub resource: Value,
    /// The namespaces to copy it into.
    pub targets: ResourceDistributionTargets,
}

/// The schema of a whole object whose fields the server does not know.
fn embedded(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The namespaces: those of any of the three ways, less the excluded ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionTargets {
    /// Every namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_namespaces: bool,
    /// Namespaces that get no copy, whatever the rest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<ResourceDistributionTargetNamespaces>,
    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub included_namespaces: Option<ResourceDistributionTargetNamespaces>,
    /// Namespaces by their labels. An empty selector selects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_label_selector: Option<LabelSelector>,
}

/// A list of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionTargetNamespaces {
    /// The namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<ResourceDistributionNamespace>>,
}

impl ResourceDistributionTargetNamespaces {
    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let list = self.list.iter().flatten();
        list.map(|namespace| namespace.name.as_deref().unwrap_or_default())
    }
}

/// A namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionNamespace {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How far the copies are. Numbers that are zero are left out, as Go leaves them out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionStatus {
    /// How many namespaces are to have a copy.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub desired: i32,
    /// How many of them have it.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub succeeded: i32,
    /// How many of them have it not.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "Option<i32>")]
    pub failed: i32,
    /// The generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub observed_generation: i64,
    /// The conditions, one for each kind of failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ResourceDistributionCondition>>")]
    pub conditions: Vec<ResourceDistributionCondition>,
}

/// A kind of failure, and where it happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDistributionCondition {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` if there is such a failure, else `False`.
    pub status: String,
    /// When `status` changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The text of the last failure, or `Succeeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The namespaces of the failures.
    #[serde(default, rename = "failedNamespace", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>")]
    pub failed_namespaces: Vec<String>,
}
