//! Histories of Advanced StatefulSets.

mod judge;
mod numbers;
mod wish;

pub(super) use wish::StatefulSetWish;
