//! The PodProbeMarker.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Probe;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wanted state of a PodProbeMarker: probes of pods, and the marks that pods get by their results.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "PodProbeMarker",
    plural = "podprobemarkers",
    namespaced,
    status = "PodProbeMarkerStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct PodProbeMarkerSpec {
    /// The pods.
    pub selector: LabelSelector,
    /// The probes.
    pub probes: Vec<PodContainerProbe>,
}

/// A probe of a container of each pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodContainerProbe {
    /// Its name.
    pub name: String,
    /// The container.
    pub container_name: String,
    /// The probe.
    pub probe: Probe,
    /// The marks that a pod gets by the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker_policy: Option<Vec<ProbeMarkerPolicy>>,
    /// The type of the pod's condition that has the result; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub pod_condition_type: String,
}

/// The marks that a pod gets by one result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeMarkerPolicy {
    /// `Succeeded` or `Failed`.
    pub state: String,
    /// Labels of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The observed state of a PodProbeMarker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["observedGeneration"]))]
pub struct PodProbeMarkerStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default)]
    pub observed_generation: i64,
    /// How many pods are selected.
    #[serde(default, skip_serializing_if = "crate::shared::is_zero_i64")]
    #[schemars(with = "Option<i64>")]
    pub matched_pods: i64,
}
