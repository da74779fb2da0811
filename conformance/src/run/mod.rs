//! Plays recordings and scenarios on a backend.

pub mod compare;
pub mod outcome;
pub mod play;
