//! The program of OpenKruise that runs on every node beside the kubelet: `kruise-daemon`.
//!
//! [`Daemon`] is the program for one node. [`ContainerRuntime`] and [`PodNetwork`] are its needs of the node, as CRI has it.
//!
//! - `report` (pure) makes the record of each pod of OpenKruise: with which image and which environment its containers run
//!   (annotation `apps.kruise.io/runtime-containers-meta`). Updates in place need it.
//! - `restarts` stops containers, for requests and for new environments.
//! - `probes` runs the probes that NodePodProbes ask for. `http` has the requests of probes and hooks,
//!   `tls` their encryption.
//! - `images` pulls the images that the NodeImage of the node lists, with an [`ImageService`].
//! - [`Health`] says whether the caches have seen all objects.

mod health;
mod http;
mod images;
mod probes;
mod report;
mod restarts;
mod run;
mod runtime;
#[cfg(test)]
mod test_node;
mod tls;

use std::sync::Arc;

use client_kit::SharedClock;
use kube::Client;

pub use client_kit::Credential;
pub use health::Health;
pub use images::{ImageService, PullRequest};
pub use run::Daemon;
pub use runtime::{
    CommandOutput, Connection, ContainerRuntime, PodNetwork, RunningContainer, RuntimeError, container_hash,
};

/// The node of a daemon.
struct Node {
    client: Client,
    name: String,
    runtime: Arc<dyn ContainerRuntime>,
    network: Arc<dyn PodNetwork>,
    clock: SharedClock,
}
