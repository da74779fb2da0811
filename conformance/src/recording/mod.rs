//! Recordings: the behaviour of real OpenKruise on a real Kubernetes, as data.
//!
//! A recording is a folder with `steps.json`, the manifests that it applies, and `trace.jsonl`. [`load`] reads it,
//! [`environment`] has its cluster's properties (generated names, images), [`node_speed`] the speed of its nodes, [`creations`] that
//! of its API server, [`effect`] the times at which steps took effect, [`pages`] the pages that its images served.
//! [`choices`] has the order in which equal pods were taken.
//! [`pairing`] matches the pods of a run with those of the recording, and [`roles`] the pods
//! that a step names; `revisions` matches names of revisions that depend on the manager's libraries. [`divergences`] is the list
//! of differences that are known and forgiven. Playing one is `crate::run`'s business.

pub mod choices;
pub mod creations;
pub mod divergences;
pub mod effect;
pub mod environment;
pub mod load;
pub mod node_speed;
pub mod pages;
pub mod pairing;
mod revisions;
pub mod roles;

pub use load::{Action, Recording, Step};
