//! Carries out a plan: `perform` does an action, `set` writes the set's status and labels its revisions.

mod perform;
mod set;

pub(super) use perform::perform;
pub(super) use set::{label_revision, write_status};
