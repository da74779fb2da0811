//! Chainsaw's assertions: trees of JSON whose leaves may be expressions.
//!
//! [`expression`] evaluates JMESPath, [`operators`] and [`functions`] are Chainsaw's additions to it, [`cel`] is its other
//! language, [`questions`] are the requests of expressions to a cluster. [`tree`] compares a tree with a value.

mod cel;
pub mod expression;
pub mod functions;
mod operators;
pub mod questions;
pub mod tree;

pub use expression::{Bindings, Compiler};
