//! One pod on one node.
//!
//! [`worker`] is its life and what wakes it; [`sync`] brings the containers to where the spec wants them, [`start`] and
//! [`stop`] are the ways there and back; [`probes`] asks running containers; [`environment`] and [`volumes`] are what a
//! container needs before it can start, [`claims`] what a pod that no scheduler has placed waits for; [`backoff`] says when something that failed may be tried again,
//! [`resize`] whether a pod gets the resources that it asks for now.

mod backoff;
mod claims;
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

pub(super) use worker::PodWorker;
