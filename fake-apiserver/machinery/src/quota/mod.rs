//! The usage that ResourceQuotas count: pure. Admission adds to the count, a controller keeps it.

pub mod amounts;
mod scope;
mod usage;

pub use scope::{ends, in_scope};
pub use usage::{SAID, is_of_kind, is_of_pods, usage};
