//! The rules: from one moment of a set to actions and a status.
//!
//! * `pass` is the whole, `status` counts, `revisions` finds the revision of the spec and those that go;
//! * `candidates` says which pods are upgraded now, `upgrade` changes one, `hot` its pairs, `condition` says whether pods can be.
//!
//! **Architecture invariant:** nothing here does I/O, reads a clock or draws randomness.

mod candidates;
mod condition;
mod hot;
mod pass;
pub(super) mod revisions;
mod status;
mod upgrade;

pub(super) use pass::{Action, Plan, plan};
pub(super) use status::differs;

#[cfg(test)]
mod pass_tests;
