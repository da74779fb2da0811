//! ContainerRecreateRequest, as far as sidecars are ended by it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Containers of a pod that OpenKruise's daemon stops. What is not needed here is kept as it came.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ContainerRecreateRequest",
    plural = "containerrecreaterequests",
    shortname = "crr",
    namespaced,
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestSpec {
    /// The pod.
    pub pod_name: String,
    /// The containers.
    pub containers: Vec<RecreatedContainer>,
    /// How they are stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RecreateStrategy>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A container that is stopped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecreatedContainer {
    /// Its name.
    pub name: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How containers are stopped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecreateStrategy {
    /// `Fail` or `Ignore`: whether the first container that cannot be stopped ends the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Whether a container that was started anew meanwhile is stopped, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_recreate: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
