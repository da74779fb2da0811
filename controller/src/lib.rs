//! OpenKruise in Rust: controllers and webhooks, against nothing but the Kubernetes API.
//!
//! Where to look:
//! * [`kruise_api`], here as [`api`]: the types, labels and conditions users see, a crate of its own.
//! * [`workloads`]: a room for each kind, and the list of them. [`cloneset`] is one, as `observe → plan → act`; its rules are
//!   in `plan`, which is pure.
//! * [`kruise_kit`], here as `kit`: the runtime that every controller has: caches, queues, workers.
//! * [`kruise_pods`], here as `pods`: the common engines of the kinds that run pods: update in place, hooks, revisions, rankings.
//! * [`injection`]: the webhooks of pods: the fields that are filled into new ones, and which may go.
//! * `protection`: Namespaces, definitions, Services and others that a label protects from deletion.
//! * `images`: rules for images that jobs and the daemon share.
//! * `targets`: workloads of any kind, to which budgets and spreads refer.
//! * [`webhook`]: defaulting and validation, as functions from an AdmissionReview to its answer.
//! * [`daemon`]: the program on every node: it reports how containers run, and restarts them for a new environment.
//! * [`Manager`]: everything wired to a `kube::Client`.
//! * [`process`]: the process around it, which the binary `kruise-manager` runs: flags, gates, election, TLS, endpoints.
//!
//! **Invariant:** nothing here knows whether it talks to a real cluster, reads the wall clock other than through
//! `client_kit::Clock`, or draws random numbers other than from a seed.

pub mod webhook;

pub use kruise_api as api;
pub use kruise_kit::{ListOrder, RetryDelays, gates, metrics};
pub(crate) use {kruise_kit as kit, kruise_kit::go_values, kruise_pods as pods};

pub use manager::Manager;
pub use workloads::{Options, cloneset, crds};

pub mod daemon;
mod images;
pub mod injection;
#[cfg(test)]
mod layers;
mod manager;
pub mod process;
mod protection;
mod targets;
#[cfg(test)]
mod test_admission;
#[cfg(test)]
mod test_server;
pub mod workloads;
