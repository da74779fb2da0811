//! The PersistentPodState controller: it records where the pods of a set are, so that they come back there.
//!
//! `observe` is one moment of a PersistentPodState, its set and the pods, `plan` turns it into a status, `controller` writes that.
//! `targets` reads workloads alike. `auto` says which PersistentPodState the annotations of a workload ask for. `wake` says which changes
//! matter, `listed` watches workloads of the kinds in the white list. `plan`, `auto` and `targets` are pure. `webhook` validates; the
//! records are put into new pods by `injection::pod_states`, which has the white list, too.

mod auto;
mod controller;
mod listed;
mod observe;
mod plan;
mod start;
mod targets;
mod wake;
mod webhook;

pub use start::WORKLOAD;
