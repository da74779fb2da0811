//! The rules: from the observed objects to pods that get containers, and a status, as pure functions.
//!
//! `pass` puts a pass together, `counts` reads the job's containers in pods, `status` makes the status.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod counts;
mod pass;
mod status;

pub(super) use pass::{Plan, Work, plan};
