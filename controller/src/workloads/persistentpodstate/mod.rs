//! The PersistentPodState controller: it records where the pods of a set are, so that they come back there.
//!
//! `observe` is one moment of a PersistentPodState, its set and the pods, `plan` turns it into a status, `controller` writes that.
//! `targets` reads the sets of two groups alike. `plan` and `targets` are pure. `webhook` validates; the records are put into new pods
//! by `injection`.

mod controller;
mod observe;
mod plan;
mod start;
mod targets;
mod webhook;

pub use start::WORKLOAD;
