//! Pod templates as Go programs see and write them.
//!
//! A revision's name is a hash over bytes that Go's encoder made of Go structs. To give the same name to the same
//! template, [`canonical`] brings JSON into the form that decoding into those structs and encoding them again gives,
//! and [`to_go_json`] writes it with Go's escapes.

mod canonical;
pub mod defaults;
mod quantity;
pub mod rules;
pub mod spec;

pub use canonical::{claim_template, pod_template};
pub use quantity::canonical_quantity;
pub use shared_json::{go_escape, to_go_string as to_go_json};
