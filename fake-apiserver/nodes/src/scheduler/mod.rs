//! The scheduler: a framework in small.
//!
//! [`run`] is the loop; [`cluster`] is what it knows of nodes, pods and volumes; [`filters`] say where a pod cannot go, each
//! in a file of its own and in the real one's order; [`hints`] which changes may help those that they have refused; [`scores`] say where it had best go; [`devices`] which devices a pod
//! gets; [`preemption`] whom it may drive away; [`message`] is what it says of a pod that fits nowhere.

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
