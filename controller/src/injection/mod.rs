//! Fills in new pods: `pod` is the webhook, `pod_states` brings pods back to where they were, `sidecars` fills in the containers of
//! SidecarSets.

mod pod;
mod pod_states;
pub(crate) mod sidecars;

pub(crate) use pod::WEBHOOKS;
