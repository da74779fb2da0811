//! Devices: which of them a pod's claims get on a node.
//!
//! [`claims`] is what a pod asks for and has, [`pools`] what a node reaches, [`request`] which devices a request takes,
//! [`search`] finds the first way in which all requests get theirs, in the real one's order; [`capacity`] is what devices that
//! several share have left, [`constraint`] what devices must have in common, [`result`] the allocation as it is written.

mod capacity;
mod claims;
mod constraint;
mod pools;
mod request;
mod result;
mod search;

pub(super) use claims::{ELSEWHERE, State, claims_of};

#[cfg(test)]
mod tests;
