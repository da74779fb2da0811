//! Histories of SidecarSets, whose pods are those of a ReplicaSet.

mod judge;
mod pod;
mod wish;

pub(super) use wish::SidecarSetWish;
