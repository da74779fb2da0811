//! Descriptions of types, and their uses: defaults, unknown fields, wrong types, invalid values.
//!
//! - `schema`: the description; `builtin` makes those of Kubernetes' own kinds, `structural` those of custom resources.
//! - For built-in kinds, in the order in which a request meets them: [`Schema::check_types`] (`decode`), [`Schema::prune`],
//!   [`Schema::canonicalize`] (`canonical`), [`Schema::default`] (`defaults`).
//! - For custom resources: [`Schema::prune`], [`Schema::default`], [`Schema::validate`].
//!
//! Everything here is a pure function of its arguments and total.

mod bounds;
mod builtin;
mod canonical;
mod decode;
mod defaults;
mod enums;
mod facts;
mod fields;
mod format;
mod go_time;
mod mailbox;
mod prune;
pub mod published;
#[cfg(test)]
mod recorded;
mod schema;
mod settled;
mod structural;
mod time;
mod validate;

pub(crate) use bounds::go_float;
pub use builtin::field_description;
pub use builtin::{builtin, builtin_kinds, object_meta};
pub use decode::DecodeError;
pub(crate) use format::fits as fits_format;
pub use pod_rules::durations::check_duration;
pub use pod_rules::quantity::{self, Quantity};
pub use schema::{
    Array, Child, Field, Kind, Limits, ListType, Logic, Object, PatchStrategy, Schema, Written,
};
pub use time::rfc3339;
pub(crate) use time::unix_seconds;
