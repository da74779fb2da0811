//! Tests of the workspace itself.

mod build;
mod rooms;
