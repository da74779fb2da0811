//! Tests of the workspace itself.

mod rooms;
