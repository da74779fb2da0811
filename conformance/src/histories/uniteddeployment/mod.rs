//! Histories of UnitedDeployments.

mod judge;
mod wish;

pub(super) use wish::UnitedDeploymentWish;
