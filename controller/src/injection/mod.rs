//! What is filled into new pods, whoever makes them.

mod pod;

pub(crate) use pod::WEBHOOKS;
pub use pod::mutate_pod;
