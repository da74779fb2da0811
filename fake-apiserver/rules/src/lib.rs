//! The API server's rules for each built-in kind: the valid objects, and the fields that the server writes.
//!
//! [`strategy`] is the server's own code for a resource beyond its schema: fields set at creation, fields that may change, the
//! way of a deletion. [`validation`] finds the errors in an object, in the real server's order and words, and the warnings for
//! clients.
//!
//! **Invariant:** functions see the object, its former state and the time. A rule that needs other objects is admission, in the server.

pub mod strategy;
pub mod validation;
