//! The rules: from the observed objects to workloads that are made, changed and deleted, and to a status, as pure functions.
//!
//! `pass` puts a pass together on a `view` of the subsets. `allocate` says how many pods each has, `elastic` by minima and maxima,
//! `adaptive` and `reserve` look at pods that get no nodes. `build` makes the workload of a subset, `revisions` the revision of the
//! template, `status` and `conditions` the status.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod adaptive;
mod allocate;
mod build;
mod conditions;
mod elastic;
mod pass;
mod reserve;
mod revisions;
mod status;
#[cfg(test)]
mod test_world;
mod times;
mod verdict;
mod view;

pub(super) use build::{Wanted, apply, cut, prefix};
pub(super) use conditions::{PROVISIONED, SUBSETS_UPDATED, set as set_condition};
pub(super) use pass::{Failure, Plan, plan};
pub(super) use reserve::Labelled;
pub(super) use revisions::plan as plan_revisions;
