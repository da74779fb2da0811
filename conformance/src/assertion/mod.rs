//! Chainsaw's assertions: trees of JSON whose leaves may be expressions.
//!
//! [`expression`] evaluates JMESPath, [`operators`] and [`functions`] add what Chainsaw adds to it, [`tree`] compares a tree with a
//! value.

pub mod expression;
pub mod functions;
mod operators;
pub mod tree;

pub use expression::Bindings;
