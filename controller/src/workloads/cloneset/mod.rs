//! The CloneSet controller: `observe → plan → act`.
//!
//! `observe` is one moment of a set, [`Planner`] turns it into a [`Plan`], `act` carries that out. `plan` and `diff` are pure,
//! as are the engines in `pods` that they use.

mod start;
mod webhook;

pub(crate) mod act;
pub(crate) mod controller;
pub(crate) mod diff;
mod gates;
mod observe;
mod plan;
pub(crate) mod settings;

pub use crate::pods::{CachedPod, PodAction, PodRef, Revision, Revisions};
pub use gates::Gates;
pub use observe::Observed;
pub use plan::{Action, CloneSetPlanner, Phase, Plan, Planner, Update};
pub use start::WORKLOAD;
