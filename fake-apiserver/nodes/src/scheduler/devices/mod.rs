//! Devices: the allocation for a pod's claims on a node.
//!
//! [`claims`] are a pod's claims and their allocations, [`pools`] the devices in a node's reach, [`request`] the devices that a
//! request takes, [`search`] finds the first way in which all requests get theirs, in the real one's order; [`capacity`] is the
//! rest of shared devices, [`constraint`] the constraints between devices, [`result`] the allocation as it is written;
//! [`extended`] is the claim that the scheduler makes itself, for resources that classes of devices stand for.

mod capacity;
mod claims;
mod constraint;
mod extended;
mod pools;
mod request;
mod result;
mod search;

pub(super) use claims::{ELSEWHERE, State, claims_of, reserve};
pub(super) use extended::{Special, is_by_devices, stands_for};

#[cfg(test)]
mod tests;
