//! WorkloadSpreads: the subset of each new pod, and the record of pods that go.
//!
//! * `version` is the version of its workload that a pod has, `matched` its annotation; `find` finds the spread of a pod, with the
//!   kinds of `white_list`;
//! * `choose` chooses the subset of a new pod and records pods that come and go, `room` says how many pods a subset takes at first;
//! * `fill` fills a subset into a pod;
//! * `creation` and `removal` are the webhooks.
//!
//! Everything but `find`, `creation` and `removal` is pure. The controller of WorkloadSpreads uses these modules, too.

mod choose;
mod creation;
pub(crate) mod fill;
mod find;
pub(crate) mod matched;
mod removal;
pub(crate) mod room;
pub(crate) mod version;
pub(crate) mod white_list;

pub(super) use creation::place;
pub(super) use removal::record;

/// The gate of spreads.
pub(crate) const GATE: &str = "WorkloadSpread";
