//! What OpenKruise runs on every node beside the kubelet: `kruise-daemon`.
//!
//! So far it is the part that updates in place need: it writes down with which image and which environment each
//! container of OpenKruise's pods runs (annotation `apps.kruise.io/runtime-containers-meta`), and restarts a container
//! whose environment comes from labels or annotations that have changed, because the kubelet does not.
//!
//! [`Daemon`] is the program for one node, [`ContainerRuntime`] what it needs of the node, and `report` the rules (pure).

mod report;
mod run;
mod runtime;

pub use run::Daemon;
pub use runtime::{ContainerRuntime, RunningContainer, container_hash};
