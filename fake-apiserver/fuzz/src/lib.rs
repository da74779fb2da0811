//! Fuzz targets of the API server: `cargo xtask fuzz-seeds` collects what to begin with, `cargo +nightly fuzz run TARGET` begins.

pub mod inputs;
