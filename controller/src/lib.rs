//! OpenKruise in Rust.
