//! The messages of `runtime.v1`, with the fields that are used here and their numbers there.
//!
//! `containers` and `images` have the calls of OpenKruise's daemon, `sandboxes` those with which a kubelet makes pods.

mod containers;
mod images;
mod sandboxes;

pub use containers::{
    Container, ContainerFilter, ContainerMetadata, ContainerState, ContainerStatus, ContainerStatusRequest,
    ContainerStatusResponse, ExecSyncRequest, ExecSyncResponse, ListContainersRequest,
    ListContainersResponse, StopContainerRequest, VersionRequest, VersionResponse,
};
pub use images::{
    AuthConfig, FilesystemUsage, Image, ImageFsInfoRequest, ImageFsInfoResponse, ImageSpec,
    ImageStatusRequest, ImageStatusResponse, ListImagesRequest, ListImagesResponse, PullImageRequest,
    PullImageResponse,
};
pub use sandboxes::{
    ContainerConfig, CreateContainerRequest, CreateContainerResponse, KeyValue, LinuxContainerConfig,
    LinuxContainerSecurityContext, LinuxPodSandboxConfig, LinuxSandboxSecurityContext, ListPodSandboxRequest,
    ListPodSandboxResponse, NamespaceMode, NamespaceOption, PodSandbox, PodSandboxConfig, PodSandboxMetadata,
    RemoveContainerRequest, RemovePodSandboxRequest, RunPodSandboxRequest, RunPodSandboxResponse,
    StartContainerRequest, StopPodSandboxRequest,
};

use prost::Message;

/// The answer without fields.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Empty {}
