//! Updating pods in place.
//!
//! `change` says what differs between two revisions and whether a pod can take it in place; `apply` turns that into
//! patches of a pod, one batch of containers after the other; `complete` says whether a batch has arrived; `state` is
//! what is kept in annotations meanwhile.

pub(crate) mod apply;
pub(crate) mod change;
pub(crate) mod complete;
pub(crate) mod hash;
pub(crate) mod resize;
pub(crate) mod state;
