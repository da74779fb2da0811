//! Descriptions of types, and what follows from them: defaults, unknown fields, wrong types, invalid values.
//!
//! - `schema`: the description; `builtin` makes those of Kubernetes' own kinds, `structural` those of custom resources.
//! - For built-in kinds, in the order in which a request meets them: [`Schema::check_types`] (`decode`), [`Schema::prune`],
//!   [`Schema::canonicalize`] (`canonical`), [`Schema::apply_defaults`] (`defaults`).
//! - For custom resources: [`Schema::prune`], [`Schema::apply_defaults`], [`Schema::validate`].
//!
//! Everything here is a pure function of its arguments and total.

mod builtin;
mod canonical;
mod decode;
mod facts;
mod prune;
mod quantity;
mod schema;
mod time;

pub(crate) use builtin::object_meta;
pub use builtin::{builtin, builtin_kinds};
pub use decode::DecodeError;
pub(crate) use quantity::Quantity;
pub use schema::{Array, Child, Field, Kind, Limits, ListType, Logic, Object, PatchStrategy, Schema, Written};
pub(crate) use time::unix_seconds;
