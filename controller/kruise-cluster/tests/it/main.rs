//! Tests of OpenKruise on a cluster in a test.

mod examples;
mod probes;
mod register;
mod start;
