//! Server-side apply, and the ownership of fields by all other writes.
//!
//! - `path`, `field_set`: paths into an object and sets of them (`fieldsV1`); `managed`: `metadata.managedFields`.
//! - `types`: how a type looks to the merge; `check`, `merge`, `compare`, `remove`, `to_set`: walks over values of a type.
//! - `owners`: how ownership moves; `operation`: the two requests, [`apply()`] and [`track_update`].
//!
//! Every recorded path is taken to be of the version at hand: all versions of the served kinds have the same paths, but for the
//! two of HorizontalPodAutoscaler and for custom resources with a conversion webhook.

mod check;
mod compare;
mod error;
mod field_set;
mod last_applied;
mod managed;
mod merge;
mod operation;
mod owners;
mod path;
mod remove;
#[cfg(test)]
mod tests;
mod to_set;
mod types;

pub use error::{ApplyError, Conflict};
pub use field_set::FieldSet;
pub use managed::{Manager, UPDATE_MANAGERS_MAX};
pub use operation::{Operation, apply, keep_times, sorted, track_update};
pub use path::{PathElement, Scalar};
