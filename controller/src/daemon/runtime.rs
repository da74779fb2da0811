//! The container runtime and the network of a node as the daemon sees them.

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::LifecycleHandler;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// A container that a runtime knows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningContainer {
    /// Its name in the pod.
    pub name: String,
    /// Its id with the runtime's name, as in a pod's status: `containerd://…`.
    pub id: String,
    /// How often it was started before.
    pub restart_count: i32,
    /// The hash that the kubelet gave it when it was created; [`container_hash`].
    pub hash: u64,
    /// When it was started.
    pub started_at: Timestamp,
    /// The hook before it is stopped, which the kubelet writes down when it creates a container.
    pub pre_stop: Option<LifecycleHandler>,
    /// Whether it runs. One that does not has ended.
    pub running: bool,
}

/// The end of a command in a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOutput {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// Why a container runtime did not carry out a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuntimeError {
    /// A command did not end in time.
    #[error("{0}")]
    TimedOut(String),
    /// Anything else, in the runtime's words.
    #[error("{0}")]
    Failed(String),
}

/// The parts of a node's container runtime that the daemon needs (`ListContainers` and `ContainerStatus`, `ExecSync` and
/// `StopContainer` of CRI).
pub trait ContainerRuntime: Send + Sync + 'static {
    /// The newest container of each name of a pod.
    fn containers<'a>(
        &'a self,
        pod_uid: &'a str,
    ) -> BoxFuture<'a, Result<Vec<RunningContainer>, RuntimeError>>;

    /// Runs a command in a container, for at most `timeout`.
    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Duration,
    ) -> BoxFuture<'a, Result<CommandOutput, RuntimeError>>;

    /// Asks a container to end, ends it after `grace`, and is done when it has ended. Does nothing to one that does not run.
    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>>;
}

/// A connection to a port of a pod.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

/// The network in which a node reaches pods.
pub trait PodNetwork: Send + Sync + 'static {
    /// Connects to a port of an address. The error is Go's text: `dial tcp 10.0.0.1:80: connect: connection refused`.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn Connection>, String>>;
}

/// The hash that a kubelet (1.31 and later) gives a container of this name and image.
#[must_use]
pub fn container_hash(name: &str, image: &str) -> u64 {
    go_dump::container_hash(name, Some(image))
}
