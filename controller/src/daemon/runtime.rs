//! The container runtime as the daemon sees it.

use std::collections::BTreeMap;

use crate::pods::inplace::hash::plain_hash;
use crate::pods::pod::Container;

/// A container that a runtime knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    /// Its name in the pod.
    pub name: String,
    /// Its id with the runtime's name, as in a pod's status: `containerd://…`.
    pub id: String,
    /// How often it was started before.
    pub restart_count: i32,
    /// The hash that the kubelet gave it when it was created; [`container_hash`].
    pub hash: u64,
    /// Whether it runs.
    pub running: bool,
}

/// What the daemon asks of a node's container runtime (`ListContainers`, `ExecSync` of `env`, `StopContainer` of CRI).
pub trait ContainerRuntime: Send + Sync + 'static {
    /// The newest container of each name of a pod.
    fn containers(&self, pod_uid: &str) -> Vec<RunningContainer>;

    /// The environment of a container; none unless it runs.
    fn environment(&self, id: &str) -> Option<BTreeMap<String, String>>;

    /// Asks a container to end, and ends it after `grace_seconds`. Does nothing to one that does not run.
    fn stop(&self, id: &str, grace_seconds: u64);
}

/// The hash that a kubelet (1.31 and later) gives a container of this name and image.
#[must_use]
pub fn container_hash(name: &str, image: &str) -> u64 {
    plain_hash(&Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        ..Container::default()
    })
}
