//! Histories of BroadcastJobs.

mod judge;
mod wish;

pub(super) use wish::BroadcastJobWish;
