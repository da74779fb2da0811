//! The rules: from what was observed to actions and a status, as pure functions.
//!
//! `pass` puts a pass together from `manage` (a pod for each node that fits, none elsewhere), `update` (brings pods to the update
//! revision; `surge` does so with a new pod beside the old one), `predownload` (pulls images early) and `status`. `change` turns pods to make and to delete into
//! actions. `view` is what all of them ask about a set.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod action;
mod change;
mod manage;
mod pass;
mod predownload;
mod status;
mod surge;
mod update;
mod view;

pub(super) use action::Action;
pub(super) use pass::{Plan, plan, status_alone};
pub(super) use view::generation;
