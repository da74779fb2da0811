//! The ContainerRecreateRequest.

use k8s_openapi::api::core::v1::{ContainerPort, ExecAction, HTTPGetAction, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Containers of a pod that OpenKruise's daemon stops, so that the kubelet starts them anew.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1alpha1",
    kind = "ContainerRecreateRequest",
    plural = "containerrecreaterequests",
    shortname = "crr",
    namespaced,
    status = "ContainerRecreateRequestStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"PHASE","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"POD","type":"string","jsonPath":".spec.podName"}"#,
    printcolumn = r#"{"name":"NODE","type":"string","jsonPath":".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"}"#,
    printcolumn = r#"{"name":"AGE","type":"date","jsonPath":".metadata.creationTimestamp"}"#
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
    /// How many seconds after its creation the request ends at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// How many seconds after its end the request is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// A container that is stopped. All but its name is filled in by the webhook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecreatedContainer {
    /// Its name.
    pub name: String,
    /// Its hook before it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_stop: Option<PreStop>,
    /// Its ports, if the hook is a request by HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<ContainerPort>>,
    /// The container as it was when the request was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_context: Option<ContainerContext>,
}

/// A hook before a container is stopped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreStop {
    /// A command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// A request by HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HTTPGetAction>,
    /// A connection, which is no hook that can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TCPSocketAction>,
}

/// A container as it was when a request was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerContext {
    /// Its id with the runtime's name.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// How often it had been restarted.
    pub restart_count: i32,
}

/// How containers are stopped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecreateStrategy {
    /// `Fail` or `Ignore`: whether the first container that cannot be stopped ends the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Whether a container waits until the one before it is ready again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_recreate: Option<bool>,
    /// Whether a container that was started anew meanwhile is stopped, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_recreate: Option<bool>,
    /// How many seconds a container may take to end; those of the pod unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// How many seconds the pod is out of service before the first container is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready_grace_period_seconds: Option<i64>,
    /// How many seconds a container must run before it counts as recreated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_started_seconds: Option<i32>,
}

/// The observed state of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestStatus {
    /// `Pending`, `Recreating` or `Completed`; empty before the daemon has seen it.
    pub phase: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Why it ended, if its containers were not all recreated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
    /// The containers, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<ContainerRecreateState>>")]
    pub container_recreate_states: Vec<ContainerRecreateState>,
}

/// The state of a container of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateState {
    /// The container.
    pub name: String,
    /// `Pending`, `Recreating`, `Succeeded` or `Failed`.
    pub phase: String,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>")]
    pub message: String,
    /// Whether the daemon has stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub is_killed: bool,
}

/// A container of a request in the annotation, with its state in the pod's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncedContainer {
    /// Its name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// How often it was restarted.
    pub restart_count: i32,
    /// Its id with the runtime's name.
    #[serde(rename = "containerID")]
    pub container_id: String,
}

impl ContainerRecreateRequest {
    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.completion_time.is_some() || status.phase == "Completed")
    }

    /// Its phase; empty before the daemon has seen it.
    #[must_use]
    pub fn phase(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.phase)
    }
}
