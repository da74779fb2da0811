//! The BroadcastJob controller: a pod once on each node that fits, `observe → plan → act`.
//!
//! `observe` is one moment of a job, `plan` turns it into pods to make and to delete, `act` carries that out, and `plan` makes a
//! status of the result. `nodes` says which nodes fit a job. `plan` and `nodes` are pure. `webhook` fills in and validates.
//! The two versions differ in their names alone.

mod act;
mod controller;
mod nodes;
mod observe;
mod plan;
mod start;
mod webhook;

pub use start::WORKLOAD;

/// Label of a job's pods: the job's name.
const NAME_LABEL: &str = "broadcastjob-name";
/// Label of a job's pods: the job's uid.
const UID_LABEL: &str = "broadcastjob-controller-uid";
