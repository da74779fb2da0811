//! Carries out the plan: `perform` does an action, `set` writes the set itself, `words` has the texts of
//! events.

mod perform;
mod set;
mod words;

pub(crate) use perform::{Failed, perform};
pub(crate) use set::write_status;
pub(crate) use words::WORDS;
