//! Simulated nodes: a kubelet each, a scheduler for all, and a registry of images.
//!
//! They are clients of the Kubernetes API and hold nothing but a `kube::Client`, a clock and a seed, so that they give
//! any API server its nodes.

mod access;
mod admission;
mod by_name;
mod config;
mod containers;
mod heartbeat;
mod images;
mod kubelet;
mod link;
mod mail;
mod node;
mod pod;
mod preemption;
mod pressure;
mod programs;
mod resources;
mod scheduler;
mod status;
mod timing;

pub use access::NodeAccess;
pub(crate) use access::{LogQuery, Refused};
pub use config::NodeConfigError;
pub use containers::{ContainerInfo, Containers};
pub(crate) use heartbeat::renew as renew_lease;
pub use images::{Image, ImageRegistry, PullFailure};
pub use kubelet::Kubelet;
pub(crate) use link::Switch;
pub(crate) use node::OS_IMAGE;
pub use node::{NodeSpec, Taint};
pub use programs::{ExitScript, ProbeAnswer, Program, Reply};
pub(crate) use programs::{Session, Wants, failure};
pub(crate) use resources::asked;
pub use scheduler::Scheduler;
pub(crate) use scheduler::{node_matches, tolerates, tolerates_all};
pub use timing::Timing;
