//! The scheduler: a framework in small.
//!
//! [`run`] is the loop; [`cluster`] is its view of nodes, pods and volumes. [`filters`] refuse nodes for a pod, each in a file of
//! its own and in the real one's order. [`hints`] are the changes that may help pods that a filter has refused. [`scores`] rank
//! the nodes that are left. [`devices`] picks the devices of a pod, [`preemption`] the pods that it may evict; [`message`] is the
//! text about a pod that fits nowhere.

mod cluster;
mod devices;
mod filters;
mod hints;
mod message;
mod preemption;
mod queue;
mod report;
mod run;
mod scores;

pub(crate) use filters::ports_clash;
pub use run::Scheduler;
