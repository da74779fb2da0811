//! One pod on one node.
//!
//! [`worker`] is its life and the causes that wake it; [`sync`] brings the containers to the state that the spec wants,
//! [`start`] and [`stop`] are the ways there and back; [`probes`] asks running containers, [`asked`] programs that listen on the network, [`dialled`] programs of this machine; [`environment`] and [`volumes`] are a
//! container's needs before it can start, [`account`] the files of its service account, [`claims`] those of a pod that no scheduler has placed; [`backoff`] delays another try
//! after a failure, [`resize`] whether a pod gets the resources that it asks for now.

mod account;
mod asked;
mod backoff;
mod claims;
mod dialled;
mod environment;
mod events;
mod hooks;
mod probes;
mod resize;
mod start;
mod stop;
mod sync;
mod volumes;
mod worker;

pub(super) use account::preparation as account_files;
pub(super) use worker::PodWorker;
