//! Simulated nodes: a kubelet each, a scheduler for all, and a registry of images.
//!
//! They are clients of the Kubernetes API and hold nothing but a `kube::Client`, a clock and a seed, so that they give
//! any API server its nodes.

mod images;
mod kubelet;
mod node;
mod pod_status;
mod pod_worker;
mod scheduler;
mod timing;

pub use images::{Image, ImageRegistry, PullFailure};
pub use kubelet::Kubelet;
pub use node::NodeSpec;
pub use scheduler::Scheduler;
pub use timing::Timing;
