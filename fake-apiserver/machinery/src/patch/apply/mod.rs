//! Server-side apply, and the ownership of fields by all other writes.
//!
//! - `path`, `field_set`: paths into an object and sets of them (`fieldsV1`); `managed`: `metadata.managedFields`.
//! - `types`: how a type looks to the merge; `check`, `merge`, `compare`, `remove`, `to_set`: walks over values of a type.
//! - `change_key`, `memo`, `interned`: caches of earlier results.
//! - `owners`: how ownership moves; `operation`: the two requests, [`apply()`] and [`track_update`].
//!
//! - `versions`: the view of owners in other versions of the kind; the caller converts.

mod change_key;
mod check;
mod compare;
mod error;
mod field_set;
mod interned;
mod last_applied;
mod managed;
mod memo;
mod merge;
mod operation;
mod owners;
mod path;
mod remove;
#[cfg(test)]
mod tests;
mod to_set;
mod types;
mod versions;

pub use error::{ApplyError, Conflict};
pub use field_set::FieldSet;
pub use managed::{Manager, UPDATE_MANAGERS_MAX};
pub use operation::{Operation, apply, keep_times, merged, sorted, track_update};
pub use path::{PathElement, Scalar};
pub use versions::{Unconvertible, Versions};
