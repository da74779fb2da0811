//! Carries out what was planned: `perform` does an action, `set` writes the set itself.

mod perform;
mod set;

pub(crate) use perform::perform;
pub(crate) use set::write_status;
