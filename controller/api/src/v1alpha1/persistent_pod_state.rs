//! The PersistentPodState.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TargetReference;

/// The wanted state of a PersistentPodState: the pods of a workload come back to where they were.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "PersistentPodState",
    plural = "persistentpodstates",
    namespaced,
    status = "PersistentPodStateStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct PersistentPodStateSpec {
    /// The workload.
    #[schemars(with = "WholeReference")]
    pub target_ref: TargetReference,
    /// Annotations of pods that are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_pod_annotations: Option<Vec<PersistentPodAnnotation>>,
    /// Labels of nodes that a pod must find again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_persistent_topology: Option<NodeTopology>,
    /// Labels of nodes that a pod would rather find again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_persistent_topology: Option<Vec<PreferredTopology>>,
    /// `WhenScaled` (default): a record goes when the workload has no such pod any more. `WhenDeleted`: with the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_pod_state_retention_policy: Option<String>,
}

/// The schema of a reference whose fields must all be given.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct WholeReference {
    api_version: String,
    kind: String,
    name: String,
}

/// An annotation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentPodAnnotation {
    /// Its key.
    pub key: String,
}

/// Labels of nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTopology {
    /// Their keys.
    pub node_topology_keys: Vec<String>,
}

/// Labels of nodes, and how much they weigh.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredTopology {
    /// From 1 to 100.
    pub weight: i32,
    /// The labels.
    pub preference: NodeTopology,
}

/// The observed state of a PersistentPodState.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["observedGeneration"]))]
pub struct PersistentPodStateStatus {
    /// The generation of the spec that this status belongs to.
    #[serde(default)]
    pub observed_generation: i64,
    /// Where the pods are, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, PodState>>")]
    pub pod_states: BTreeMap<String, PodState>,
}

/// Where a pod is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodState {
    /// Its node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub node_name: String,
    /// The labels of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub node_topology_labels: BTreeMap<String, String>,
    /// The annotations of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub annotations: BTreeMap<String, String>,
}

impl PersistentPodStateSpec {
    /// The keys of all labels of nodes.
    pub fn topology_keys(&self) -> impl Iterator<Item = &str> {
        let required = self.required_persistent_topology.iter();
        let preferred = self.preferred_persistent_topology.iter().flatten();
        let all = required.chain(preferred.map(|term| &term.preference));
        all.flat_map(|topology| &topology.node_topology_keys)
            .map(String::as_str)
    }
}
