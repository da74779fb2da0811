//! The CloneSet controller: `observe → plan → act`.

pub(crate) mod diff;
pub(crate) mod inplace;
pub(crate) mod lifecycle;
pub(crate) mod revision;
pub(crate) mod settings;
