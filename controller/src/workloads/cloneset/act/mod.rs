//! Carries out what was planned.
//!
//! `create` makes pods and claims, `patch` changes and deletes them, `revisions` and `set` write the other kinds. Every write tells the
//! expectations what the watches have to show before the next pass.

mod create;
mod objects;
mod patch;
mod perform;
mod predownload;
mod revisions;
mod set;

pub(crate) use objects::Actor;
pub(crate) use revisions::Written;
