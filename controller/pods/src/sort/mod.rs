//! Which pods first: to delete, and to update.

pub mod active;
pub mod deletion;
pub mod priority;
pub mod scatter;
pub mod update;
