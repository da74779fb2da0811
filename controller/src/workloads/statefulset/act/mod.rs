//! Carries out the plan: `perform` does an action, `words` has the texts of events.

mod perform;
mod words;

pub(super) use perform::{Performer, write_status};
pub(super) use words::WORDS;
