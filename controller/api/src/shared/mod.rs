//! Types of fields that kinds of several versions have.

mod lifecycle;
mod schema;
mod update;

pub use lifecycle::{Lifecycle, LifecycleHook};
pub(crate) use schema::{is_zero, is_zero_i64, schemaless};
pub use update::{
    InPlaceUpdateStrategy, OrderPriorityTerm, ScatterTerm, UpdatePriorityStrategy, WeightPriorityTerm,
};
