//! Fuzz targets of the API server: `cargo xtask fuzz [TARGET]` begins with the requests of the recorded cases.

pub mod inputs;
