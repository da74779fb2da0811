//! The EphemeralJob controller: ephemeral containers for pods that run.
//!
//! `observe` is one moment of a job and of the pods that it selects, `plan` turns it into a status and pods that get the containers,
//! `act` carries that out. `plan` is pure. `webhook` validates. There is one version.

mod act;
mod controller;
mod observe;
mod plan;
mod start;
mod webhook;

pub use start::WORKLOAD;

/// The finalizer of a job.
const FINALIZER: &str = "apps.kruise.io/ephemeralcontainers-cleanup";
