//! Plays recordings and scenarios on a backend.

mod answers;
pub mod compare;
mod objects;
mod operations;
pub mod outcome;
pub mod play;
mod polling;
pub mod scenario;
