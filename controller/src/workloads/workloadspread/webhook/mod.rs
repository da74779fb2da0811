//! Validates WorkloadSpreads.
//!
//! `answer` answers requests, `target` has the rules of targets, `subsets` those of subsets, with `limits` for their numbers and
//! `patch` for their patches, `strategy` those of adaptive spreads.

mod answer;
mod limits;
mod patch;
#[cfg(test)]
mod recorded_tests;
mod strategy;
mod subsets;
mod target;

pub(super) use answer::VALIDATING;
