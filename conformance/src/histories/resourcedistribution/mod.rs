//! Histories of ResourceDistributions over namespaces that come and go.

mod judge;
mod wish;

pub(super) use wish::DistributionWish;
