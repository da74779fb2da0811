//! What the API server accepts of each built-in kind, and what it writes into it.
//!
//! [`strategy`] is what the schema cannot say of a resource and the server itself does: what is set at birth, what may change, how a
//! deletion goes. [`validation`] is what is wrong with an object, in the real server's order and words, and what clients are warned of.
//!
//! **Invariant:** functions see the object, its former state and the time. A rule that needs other objects is admission, in the server.

pub mod strategy;
pub mod validation;
