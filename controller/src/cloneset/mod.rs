//! The CloneSet controller: `observe → plan → act`.

pub(crate) mod revision;
