//! OpenKruise in Rust: API types, controllers and webhooks, against nothing but the Kubernetes API.
//!
//! Where to look:
//! * [`api`]: the types, labels and conditions users see.
//! * [`crds`]: the definitions to install.
//! * [`cloneset`]: the CloneSet controller as `observe → plan → act`. The rules are in `plan`, which is pure.
//! * [`webhook`]: defaulting and validation, as functions from an AdmissionReview to its answer.
//! * [`daemon`]: what runs on every node: it tells what containers run with, and restarts them for a new environment.
//! * [`Manager`]: everything wired to a `kube::Client`.
//! * [`process`]: the process around it, which the binary `kruise-manager` runs: flags, gates, election, TLS, endpoints.
//!
//! **Invariant:** nothing here knows whether it talks to a real cluster, reads the wall clock other than through
//! `client_kit::Clock`, or draws random numbers other than from a seed.

pub mod api;
mod crds;

pub mod webhook;

pub use crds::{crds, crds_of_gates, pull_job_crd};
pub use kit::RetryDelays;
pub use manager::{Manager, Options};

pub mod cloneset;
pub mod daemon;
mod json;
mod kit;
mod launch_priority;
mod manager;
pub mod metrics;
mod pod;
pub mod process;
mod readiness;
mod template;
#[cfg(test)]
mod test_pods;
