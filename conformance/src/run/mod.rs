//! Plays recordings and scenarios on a backend.

mod answers;
pub mod compare;
mod objects;
mod operations;
pub mod outcome;
mod pace;
pub mod play;
pub mod scenario;
