//! What is filled into new pods, whoever makes them: `pod` is the webhook, `sidecars` fills in the containers of SidecarSets.

mod pod;
pub(crate) mod sidecars;

pub(crate) use pod::WEBHOOKS;
