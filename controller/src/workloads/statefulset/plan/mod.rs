//! The rules: from the observed objects to actions and a status, as pure functions.
//!
//! `pass` puts a pass together from `slots` (creates pods and looks after those there are, by ordinal), `condemned` (ends the
//! pods whose ordinal the set does not have any more), `update` (brings pods to the update revision), `predownload` (pulls
//! images before that) and `status`. `claims`
//! says whose claims are, and how far they follow their templates. `view` has the facts about a set that all of them use.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod action;
mod claims;
mod condemned;
mod pass;
mod predownload;
mod slots;
mod status;
mod update;
mod view;

pub(super) use action::{Action, Which};
pub(super) use pass::{Plan, plan};
pub(super) use status::{FAILED_CREATE, FAILED_UPDATE, add_failure, differs};
