//! The actions for an observed set: pure functions, and the home of the rules.
//!
//! `revisions` names the template; `pass` puts a pass together from `housekeeping` (claims and pods that are no longer
//! the set's), `scale`, `pods::refresh` and `update` (which come in one pass with scaling only if that is
//! refused), and `status`.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod action;
mod housekeeping;
mod pass;
mod predownload;
pub(crate) mod revisions;
mod scale;
pub(crate) mod status;
mod update;
mod view;

pub use action::{Action, Phase, Plan, Planner, Update};
pub use pass::CloneSetPlanner;
