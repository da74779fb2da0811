//! Validates PodUnavailableBudgets.
//!
//! `answer` answers requests, `validate` has the rules of one budget, `conflicts` those of several, `overlap` compares selectors.

mod answer;
mod conflicts;
mod overlap;
#[cfg(test)]
mod recorded_tests;
mod validate;

pub(super) use answer::VALIDATING;
