//! Which pods first: to delete, and to update.

pub(crate) mod active;
pub(crate) mod deletion;
pub(crate) mod priority;
pub(crate) mod scatter;
pub(crate) mod update;
