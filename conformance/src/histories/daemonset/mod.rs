//! Histories of Advanced DaemonSets.

mod judge;
mod numbers;
mod wish;

pub(super) use wish::DaemonSetWish;
