//! The rules: from the observed objects to pods to make and to delete, and from the result to a status, as pure functions.
//!
//! `pass` puts a pass together. `view` counts the pods and looks at the nodes, `verdict` says whether the job is over, `policy` reads
//! the spec, `outcome` makes the status.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod outcome;
mod pass;
mod policy;
#[cfg(test)]
mod test_world;
mod verdict;
mod view;

pub(super) use outcome::Done;
pub(super) use pass::{Plan, Work, plan};
