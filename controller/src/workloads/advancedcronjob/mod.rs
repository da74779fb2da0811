//! The AdvancedCronJob controller: jobs by the clock.
//!
//! `observe` is one moment of an AdvancedCronJob and of its jobs, `plan` turns it into a status, jobs to delete and the one to make,
//! `act` carries that out. `jobs` reads jobs of the three kinds alike. `plan` and `jobs` are pure. `webhook` fills in and validates,
//! `conversion` leads from one version to the other.

mod act;
mod controller;
mod conversion;
mod jobs;
mod observe;
mod plan;
mod start;
mod webhook;

pub use start::WORKLOAD;

/// Annotation of a job: the time for which it was made.
const SCHEDULED_AT: &str = "apps.kruise.io/scheduled-at";
