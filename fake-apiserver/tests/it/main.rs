//! The cluster as its clients see it.

mod pods;
mod support;
