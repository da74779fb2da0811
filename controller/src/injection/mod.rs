//! Fills in new pods: `pod` is the webhook, `sidecars` fills in the containers of SidecarSets.

mod pod;
pub(crate) mod sidecars;

pub(crate) use pod::WEBHOOKS;
