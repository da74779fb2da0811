//! JSON as Go's `encoding/json` reads it, and its complaints.

mod error;
mod numbers;
mod read;

pub(crate) use numbers::as_written;
pub use read::{Document, order, parse, parse_untyped};
