//! The CloneSet controller: `observe → plan → act`.
//!
//! `observe` is what was seen, [`Planner`] turns it into a [`Plan`], `act` carries that out. `plan` and everything below
//! it (`diff`, `sort`, `inplace`, `lifecycle`, `revision`) is pure.

mod start;
mod webhook;

pub(crate) mod act;
pub(crate) mod build;
mod claims_hash;
pub(crate) mod controller;
pub(crate) mod diff;
pub(crate) mod expectations;
mod gates;
mod heal;
pub(crate) mod ids;
pub(crate) mod inplace;
pub(crate) mod lifecycle;
mod observe;
pub(crate) mod owner;
mod plan;
pub(crate) mod revision;
pub(crate) mod settings;
pub(crate) mod sort;

pub use gates::Gates;
pub use observe::{CachedPod, Observed, Revision, Revisions};
pub use plan::{Action, CloneSetPlanner, Phase, Plan, Planner, PodRef};
pub use start::WORKLOAD;
