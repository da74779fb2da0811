//! The rules: from the observed objects to a status, jobs to delete and the job to make, as pure functions.
//!
//! `pass` puts a pass together, `due` says for which time a job is made, `history` which jobs are old, `build` makes a job.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod build;
mod due;
mod history;
mod pass;

pub(super) use pass::{Plan, plan};
