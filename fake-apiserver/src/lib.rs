//! A Kubernetes cluster inside a test.

pub mod field_error;
pub mod patch;
pub mod types;
