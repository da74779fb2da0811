//! The rules: from the observed objects to actions and a status, as pure functions.
//!
//! `pass` puts a pass together from `manage` (a pod for each node that fits, none elsewhere), `update` (brings pods to the update
//! revision; `surge` does so with a new pod beside the old one), `predownload` (pulls images early) and `status`. `doubles` comes
//! before all of them: it leaves one revision of the present template. `change` turns pods to make and to delete into actions.
//! `view` has the facts about a set that all of them use.
//!
//! **Invariant:** nothing in this folder does I/O, reads a clock or draws a random number.

mod action;
mod change;
mod doubles;
mod manage;
mod pass;
mod predownload;
mod status;
mod surge;
#[cfg(test)]
mod test_world;
mod update;
mod view;

pub(super) use action::Action;
pub(super) use pass::{Plan, plan, status_alone};
pub(super) use view::generation;
