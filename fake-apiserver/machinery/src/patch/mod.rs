//! The four ways to change an object with PATCH, as pure functions over JSON values.
//!
//! | content type | function |
//! | --- | --- |
//! | `application/json-patch+json` | [`json::apply`] |
//! | `application/merge-patch+json` | [`merge::apply`] |
//! | `application/strategic-merge-patch+json` | [`strategic::apply`] |
//! | `application/apply-patch+yaml` | [`apply::apply`] |
//!
//! [`apply::track_update`] keeps `metadata.managedFields` for every write that is not a server-side apply.

pub mod apply;
mod error;
pub mod json;
#[cfg(test)]
mod laws;
pub mod merge;
mod print;
#[cfg(test)]
mod recorded;
pub mod strategic;

pub use error::PatchError;
pub use print::{go_json, go_print, go_type, json_type};
