//! Histories of WorkloadSpreads over a CloneSet or a Deployment.

mod judge;
mod wish;

pub(super) use wish::SpreadWish;
