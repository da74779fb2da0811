//! What OpenKruise runs on every node beside the kubelet: `kruise-daemon`.
//!
//! So far it is the part that updates in place need: it writes down with which image and which environment each
//! container of OpenKruise's pods runs (annotation `apps.kruise.io/runtime-containers-meta`), and restarts a container
//! whose environment comes from labels or annotations that have changed, because the kubelet does not.
//!
//! With an [`ImageService`] it also pulls the images that the NodeImage of its node lists.
//!
//! [`Daemon`] is the program for one node, [`ContainerRuntime`] what it needs of the node, and `report` the rules (pure).

mod images;
mod report;
mod run;
mod runtime;

pub use images::{Credential, ImageService, PullRequest};
pub use run::Daemon;
pub use runtime::{ContainerRuntime, RunningContainer, container_hash};
