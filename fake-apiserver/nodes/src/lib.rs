//! Simulated nodes: a kubelet each, a scheduler for all, and a registry of images.
//!
//! They are clients of the Kubernetes API and hold nothing but a `kube::Client`, a clock and a seed, so that they give
//! any API server its nodes.

mod access;
mod admission;
mod by_name;
mod config;
mod container_programs;
mod containers;
mod critical_pods;
mod disks;
mod heartbeat;
mod images;
mod kubelet;
mod link;
mod mail;
mod nic;
mod node;
mod pressure;
mod programs;
mod scheduler;
mod service_proxy;
mod status;
mod timing;

pub use access::KubeletPort;
pub use config::{NodeConfigError, NodeFile};
pub use container_programs::ContainerPrograms;
pub use containers::{ConnectError, ContainerInfo, Containers, ExecError, NodeContainer};
pub use disks::Disks;
pub use heartbeat::renew as renew_lease;
pub use images::{Image, ImageRegistry, PullError, PullFailure, canonical};
pub use kubelet::Kubelet;
pub use link::Switch;
pub use network;
pub use nic::DialError;
pub use node::{NodeSpec, Taint};
pub use node_access::{DIAL, NodeAccess};
pub use programs::{
    AskedToEnd, Container, ContainerLog, ContainerProgram, DatagramSocket, ExitScript, LaterReply, Listener,
    OutsideContainer, OutsideProgram, OutsidePrograms, ProbeAnswer, Program, Ran, Reply,
};
pub use scheduler::Scheduler;
pub use service_proxy::ServiceProxy;
pub use timing::{PodTimings, RunTiming, Timing};
