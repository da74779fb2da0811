//! Histories of ContainerRecreateRequests for the pods of a ReplicaSet.

mod judge;
mod wish;

pub(super) use wish::RestartsWish;
