//! The webhooks of pods: `pod` is the webhooks, `sidecars` fills the containers of SidecarSets into new pods, `spreads` gives
//! them the subsets of WorkloadSpreads, `pod_states` brings them back to where they were, `probes` tells them the probes of
//! PodProbeMarkers, `budgets` guards pods for PodUnavailableBudgets.

pub(crate) mod budgets;
mod pod;
pub(crate) mod pod_states;
pub(crate) mod probes;
pub(crate) mod sidecars;
pub(crate) mod spreads;

pub(crate) use pod::WEBHOOKS;
