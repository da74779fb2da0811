//! Containers: lists, statuses, commands, stops.

use std::collections::BTreeMap;

use prost::{Enumeration, Message};

use super::Empty;
use super::images::ImageSpec;
use crate::call::Call;

/// Asks for the name and the version of the runtime.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct VersionRequest {
    /// The version of the caller's API.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// The name and the version of the runtime.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct VersionResponse {
    /// The version of the kubelet's runtime API.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The name before the ids of containers: `containerd`.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// The version of the runtime.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
    /// The version of CRI: `v1`.
    #[prost(string, tag = "4")]
    pub runtime_api_version: String,
}

impl Call for VersionRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/Version";
    type Answer = VersionResponse;
}

/// The name of a container in its pod.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerMetadata {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How many containers of the name there were before in the sandbox.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
}

/// The state of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ContainerState {
    /// It was made, and not started.
    Created = 0,
    /// It runs.
    Running = 1,
    /// It has ended.
    Exited = 2,
    /// The runtime does not know.
    Unknown = 3,
}

/// The containers that are asked for.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerFilter {
    /// The id, or empty for all.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The sandbox, or empty for all.
    #[prost(string, tag = "3")]
    pub pod_sandbox_id: String,
    /// Labels that all of them have.
    #[prost(btree_map = "string, string", tag = "4")]
    pub label_selector: BTreeMap<String, String>,
}

/// Asks for containers.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListContainersRequest {
    /// Which ones; without a filter all.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ContainerFilter>,
}

/// A container in a list.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Container {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The id of its sandbox.
    #[prost(string, tag = "2")]
    pub pod_sandbox_id: String,
    /// Its name.
    #[prost(message, optional, tag = "3")]
    pub metadata: Option<ContainerMetadata>,
    /// The image that was asked for.
    #[prost(message, optional, tag = "4")]
    pub image: Option<ImageSpec>,
    /// The image by its digest.
    #[prost(string, tag = "5")]
    pub image_ref: String,
    /// Its state.
    #[prost(enumeration = "ContainerState", tag = "6")]
    pub state: i32,
    /// When it was made, in nanoseconds.
    #[prost(int64, tag = "7")]
    pub created_at: i64,
    /// The labels of its maker.
    #[prost(btree_map = "string, string", tag = "8")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of its maker.
    #[prost(btree_map = "string, string", tag = "9")]
    pub annotations: BTreeMap<String, String>,
}

/// The containers that were asked for.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ListContainersResponse {
    /// The containers.
    #[prost(message, repeated, tag = "1")]
    pub containers: Vec<Container>,
}

impl Call for ListContainersRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/ListContainers";
    type Answer = ListContainersResponse;
}

/// Asks for the status of a container.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerStatusRequest {
    /// Its id.
    #[prost(string, tag = "1")]
    pub container_id: String,
}

/// The status of a container.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerStatus {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<ContainerMetadata>,
    /// Its state.
    #[prost(enumeration = "ContainerState", tag = "3")]
    pub state: i32,
    /// When it was made, in nanoseconds.
    #[prost(int64, tag = "4")]
    pub created_at: i64,
    /// When it was started, in nanoseconds; zero before.
    #[prost(int64, tag = "5")]
    pub started_at: i64,
    /// When it ended, in nanoseconds; zero before.
    #[prost(int64, tag = "6")]
    pub finished_at: i64,
    /// The exit code of its program.
    #[prost(int32, tag = "7")]
    pub exit_code: i32,
    /// The image by a name.
    #[prost(message, optional, tag = "8")]
    pub image: Option<ImageSpec>,
    /// The image by its digest.
    #[prost(string, tag = "9")]
    pub image_ref: String,
    /// The labels of its maker.
    #[prost(btree_map = "string, string", tag = "12")]
    pub labels: BTreeMap<String, String>,
    /// The annotations of its maker.
    #[prost(btree_map = "string, string", tag = "13")]
    pub annotations: BTreeMap<String, String>,
}

/// The status that was asked for.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ContainerStatusResponse {
    /// The status.
    #[prost(message, optional, tag = "1")]
    pub status: Option<ContainerStatus>,
}

impl Call for ContainerStatusRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/ContainerStatus";
    type Answer = ContainerStatusResponse;
}

/// Runs a command in a container until it ends.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ExecSyncRequest {
    /// The container.
    #[prost(string, tag = "1")]
    pub container_id: String,
    /// The program and its arguments.
    #[prost(string, repeated, tag = "2")]
    pub cmd: Vec<String>,
    /// How long it may take, in seconds; zero is for ever.
    #[prost(int64, tag = "3")]
    pub timeout: i64,
}

/// The end of a command.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ExecSyncResponse {
    /// Its standard output.
    #[prost(bytes = "vec", tag = "1")]
    pub stdout: Vec<u8>,
    /// Its standard error.
    #[prost(bytes = "vec", tag = "2")]
    pub stderr: Vec<u8>,
    /// Its exit code.
    #[prost(int32, tag = "3")]
    pub exit_code: i32,
}

impl Call for ExecSyncRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/ExecSync";
    type Answer = ExecSyncResponse;
}

/// Stops a container. A container that has ended already is a success.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct StopContainerRequest {
    /// The container.
    #[prost(string, tag = "1")]
    pub container_id: String,
    /// How long it may take to end by itself, in seconds.
    #[prost(int64, tag = "2")]
    pub timeout: i64,
}

impl Call for StopContainerRequest {
    const METHOD: &'static str = "/runtime.v1.RuntimeService/StopContainer";
    type Answer = Empty;
}
