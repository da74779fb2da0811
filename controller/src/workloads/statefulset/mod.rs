//! The Advanced StatefulSet controller: `observe → plan → act`.
//!
//! `observe` is one moment of a set, `plan` turns it into actions and a status, `act` carries those out. `ordinals` says which
//! ordinals a set has, `settings` has the numbers of a spec. `plan`, `ordinals` and `settings` are pure, as are the engines
//! in `pods` that they use. `webhook` fills in and validates, `conversion` brings sets from one version to the other.

mod act;
mod controller;
mod conversion;
mod gates;
mod observe;
mod ordinals;
mod plan;
mod settings;
mod start;
mod webhook;

pub use start::WORKLOAD;
