//! Sandboxes, and the containers that are made in them.

use std::collections::BTreeMap;

use prost::{Enumeration, Message};

use super::Empty;
use super::containers::ContainerMetadata;
use super::images::ImageSpec;
use crate::call::Call;

/// The pod of a sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PodSandboxMetadata {
    /// The name of the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The uid of the pod.
    #[prost(string, tag = "2")]
    pub uid: String,
    /// The namespace of the pod.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// How many sandboxes the pod had before.
    #[prost(uint32, tag = "4")]
    pub attempt: u32,
}

/// Where a namespace of Linux comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum NamespaceMode {
    /// The containers of the pod share one.
    Pod = 0,
    /// Each container has its own.
    Container = 1,
    /// It is that of the node.
    Node = 2,
}

/// The namespaces of a sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct NamespaceOption {
    /// The network.
    #[prost(enumeration = "NamespaceMode", tag = "1")]
    pub network: i32,
    /// The processes.
    #[prost(enumeration = "NamespaceMode", tag = "2")]
    pub pid: i32,
    /// The inter-process communication.
    #[prost(enumeration = "NamespaceMode", tag = "3")]
    pub ipc: i32,
}

/// The security of a sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LinuxSandboxSecurityContext {
    /// Its namespaces.
    #[prost(message, optional, tag = "1")]
    pub namespace_options: Option<NamespaceOption>,
}

/// The part of a sandbox that only Linux has.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LinuxPodSandboxConfig {
    /// The control group above those of the pod.
    #[prost(string, tag = "1")]
    pub cgroup_parent: String,
    /// Its security.
    #[prost(message, optional, tag = "2")]
    pub security_context: Option<LinuxSandboxSecurityContext>,
}

/// A sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PodSandboxConfig {
    /// Its pod.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<PodSandboxMetadata>,
    /// The host name of the pod.
    #[prost(string, tag = "2")]
    pub hostname: String,
    /// The folder of the containers' logs.
    #[prost(string, tag = "3")]
    pub log_directory: String,
    /// Labels.
    #[prost(btree_map = "string, string", tag = "6")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "7")]
    pub annotations: BTreeMap<String, String>,
    /// The settings that only Linux has.
    #[prost(message, optional, tag = "8")]
    pub linux: Option<LinuxPodSandboxConfig>,
}

/// Makes a sandbox and starts it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RunPodSandboxRequest {
    /// The sandbox.
    #[prost(message, optional, tag = "1")]
    pub config: Option<PodSandboxConfig>,
}

/// The sandbox that was made.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RunPodSandboxResponse {
    /// Its id.
    #[prost(string, tag = "1")]
    pub pod_sandbox_id: String,
}

impl Call for RunPodSandboxRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/RunPodSandbox";
    type Answer = RunPodSandboxResponse;
}

/// Asks for all sandboxes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListPodSandboxRequest {}

/// A sandbox in a list.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PodSandbox {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its pod.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<PodSandboxMetadata>,
}

/// The sandboxes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListPodSandboxResponse {
    /// The sandboxes.
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<PodSandbox>,
}

impl Call for ListPodSandboxRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/ListPodSandbox";
    type Answer = ListPodSandboxResponse;
}

/// Stops a sandbox and its containers.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StopPodSandboxRequest {
    /// The sandbox.
    #[prost(string, tag = "1")]
    pub pod_sandbox_id: String,
}

impl Call for StopPodSandboxRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/StopPodSandbox";
    type Answer = Empty;
}

/// Removes a sandbox and its containers.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RemovePodSandboxRequest {
    /// The sandbox.
    #[prost(string, tag = "1")]
    pub pod_sandbox_id: String,
}

impl Call for RemovePodSandboxRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/RemovePodSandbox";
    type Answer = Empty;
}

/// A variable of a container's environment.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The security of a container.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LinuxContainerSecurityContext {
    /// Its namespaces.
    #[prost(message, optional, tag = "3")]
    pub namespace_options: Option<NamespaceOption>,
}

/// The part of a container that only Linux has.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct LinuxContainerConfig {
    /// Its security.
    #[prost(message, optional, tag = "2")]
    pub security_context: Option<LinuxContainerSecurityContext>,
}

/// A container to make.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerConfig {
    /// Its name.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<ContainerMetadata>,
    /// Its image.
    #[prost(message, optional, tag = "2")]
    pub image: Option<ImageSpec>,
    /// The program; empty for the image's.
    #[prost(string, repeated, tag = "3")]
    pub command: Vec<String>,
    /// The arguments; empty for the image's.
    #[prost(string, repeated, tag = "4")]
    pub args: Vec<String>,
    /// The environment.
    #[prost(message, repeated, tag = "6")]
    pub envs: Vec<KeyValue>,
    /// Labels.
    #[prost(btree_map = "string, string", tag = "9")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "10")]
    pub annotations: BTreeMap<String, String>,
    /// Its log, in the folder of the sandbox's logs.
    #[prost(string, tag = "11")]
    pub log_path: String,
    /// The settings that only Linux has.
    #[prost(message, optional, tag = "15")]
    pub linux: Option<LinuxContainerConfig>,
}

/// Makes a container in a sandbox.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CreateContainerRequest {
    /// The sandbox.
    #[prost(string, tag = "1")]
    pub pod_sandbox_id: String,
    /// The container.
    #[prost(message, optional, tag = "2")]
    pub config: Option<ContainerConfig>,
    /// The sandbox as it was made.
    #[prost(message, optional, tag = "3")]
    pub sandbox_config: Option<PodSandboxConfig>,
}

/// The container that was made.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CreateContainerResponse {
    /// Its id.
    #[prost(string, tag = "1")]
    pub container_id: String,
}

impl Call for CreateContainerRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/CreateContainer";
    type Answer = CreateContainerResponse;
}

/// Starts a container.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StartContainerRequest {
    /// The container.
    #[prost(string, tag = "1")]
    pub container_id: String,
}

impl Call for StartContainerRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/StartContainer";
    type Answer = Empty;
}

/// Removes a container that has ended.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RemoveContainerRequest {
    /// The container.
    #[prost(string, tag = "1")]
    pub container_id: String,
}

impl Call for RemoveContainerRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/RemoveContainer";
    type Answer = Empty;
}
