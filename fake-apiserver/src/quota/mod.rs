//! What ResourceQuotas count: pure. Admission adds to the count, a controller keeps it.

pub(crate) mod amounts;
mod scope;
mod usage;

pub(crate) use scope::{ends, in_scope};
pub(crate) use usage::{SAID, is_of_kind, is_of_pods, usage};
