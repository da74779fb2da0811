//! The NodePodProbe.

use k8s_openapi::api::core::v1::Probe;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wanted state of a NodePodProbe: the probes that OpenKruise's daemon runs on the node of its name.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "NodePodProbe",
    plural = "nodepodprobes",
    status = "NodePodProbeStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct NodePodProbeSpec {
    /// The probes, pod by pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PodProbe>>")]
    pub pod_probes: Vec<PodProbe>,
}

/// The probes of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodProbe {
    /// The pod's name.
    pub name: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's uid.
    pub uid: String,
    /// The pod's address; empty as long as it has none, and where an older definition has no such field.
    #[serde(rename = "IP", default)]
    #[schemars(!default)]
    pub ip: String,
    /// The probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ContainerProbe>>")]
    pub probes: Vec<ContainerProbe>,
}

/// A probe of a container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProbe {
    /// The name of the PodProbeMarker, `#`, and the name of the probe there.
    pub name: String,
    /// The container.
    pub container_name: String,
    /// The probe.
    pub probe: Probe,
}

/// The observed state of a NodePodProbe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePodProbeStatus {
    /// The results, pod by pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PodProbeStatus>>")]
    pub pod_probe_statuses: Vec<PodProbeStatus>,
}

/// The results of the probes of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodProbeStatus {
    /// The pod's name.
    pub name: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's uid.
    pub uid: String,
    /// The results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ContainerProbeState>>")]
    pub probe_states: Vec<ContainerProbeState>,
}

/// The result of a probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProbeState {
    /// The name of the probe, as in the spec.
    pub name: String,
    /// `Succeeded`, `Failed` or `Unknown`; empty as long as there is no result.
    pub state: String,
    /// When the probe ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// Since when the state is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The output of the probe.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The definition of OpenKruise 1.5 has no address, and one that is written is lost.
    #[test]
    fn a_probe_of_an_older_definition_has_no_address() {
        let older = json!({ "name": "p", "namespace": "ns", "uid": "u" });
        let probe: PodProbe = serde_json::from_value(older).unwrap();
        assert_eq!(probe.ip, "");
    }
}
