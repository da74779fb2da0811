//! The SidecarSet controller: `observe → plan → act`.
//!
//! `observe` is one moment of a set and of the pods that have its containers, `plan` turns it into actions and a status, `act` carries
//! those out. `sidecars` says how a pod stands to a set, `settings` has the numbers of a spec, `wake` which changes of pods count. All
//! but `act` and `controller` are pure. `webhook` fills in and validates. New pods are filled in by `injection::sidecars`, whose record in
//! the pods' annotations this controller reads and writes, too.

mod act;
mod controller;
mod observe;
mod plan;
mod settings;
mod sidecars;
mod start;
mod wake;
mod webhook;

pub use start::WORKLOAD;
