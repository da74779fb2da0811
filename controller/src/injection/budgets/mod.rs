//! PodUnavailableBudgets: which pods may be deleted, evicted and updated.
//!
//! * `operation` lists the operations on a pod, and which of them a budget guards; `resize` tells a resize from other updates;
//! * `state` says whether a pod counts as available; `judge` says whether a pod may go, and takes it out of the budget;
//! * `desk` writes statuses, one writer at a time; `asker` puts these together: it asks a budget about a pod;
//! * `related` finds the budget of a new pod, `guard` is the webhook of pods that exist.
//!
//! The controller of PodUnavailableBudgets uses `state` and `desk`, too. Controllers that update pods ask through
//! [`Leave`](crate::pods::leave::Leave), which the asker implements.

mod asker;
mod desk;
mod guard;
mod judge;
mod operation;
mod related;
mod resize;
mod state;

pub(crate) use asker::{Asker, REFUSALS};
pub(crate) use desk::{Desk, subject};
pub(super) use guard::guard;
pub(crate) use operation::is_operation;
pub(crate) use related::relate;
pub(crate) use state::is_available;

/// The gate of budgets for deletions and evictions.
pub(crate) const DELETE_GATE: &str = "PodUnavailableBudgetDeleteGate";
/// The gate of budgets for updates.
pub(crate) const UPDATE_GATE: &str = "PodUnavailableBudgetUpdateGate";
/// The gate that tells resizes from other updates.
pub(crate) const RESIZE_GATE: &str = "InPlacePodVerticalScaling";

#[cfg(test)]
mod asker_tests;
