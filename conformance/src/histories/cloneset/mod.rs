//! Histories of CloneSets.

mod judge;
mod numbers;
mod wish;

pub(super) use wish::CloneSetWish;
