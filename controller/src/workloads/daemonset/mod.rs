//! The Advanced DaemonSet controller: `observe → plan → act`.
//!
//! `observe` is one moment of a set, `plan` turns it into actions and a status, `act` carries those out. `nodes` says which
//! nodes fit a set and which changes of a node concern it, `settings` has the numbers of a spec. `plan`, `nodes` and `settings`
//! are pure, as are the engines in `pods` that they use. `webhook` fills in and
//! validates, `conversion` leads from one version to the other.

mod act;
mod controller;
mod conversion;
mod gates;
mod nodes;
mod observe;
mod plan;
mod settings;
mod start;
mod webhook;

pub use start::WORKLOAD;
