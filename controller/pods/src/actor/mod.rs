//! Carries out the plan for an owner of pods.
//!
//! `create` makes pods and claims, `patch` changes and deletes them, `revisions` and `pull_jobs` write the other kinds, `words` has the
//! texts of events, and `refusals` says which updates are not tried again yet. Every write tells the expectations which changes the
//! watches have to show before the next pass.

mod create;
mod objects;
mod patch;
mod perform;
mod pull_jobs;
mod refusals;
mod revisions;
mod words;

pub use create::{Creation, KnownClaims};
pub use objects::Actor;
pub use revisions::Written;
pub use words::{Words, updated_in_place};
