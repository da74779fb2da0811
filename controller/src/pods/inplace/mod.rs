//! Updating pods in place.
//!
//! `change` finds the difference between two revisions and whether a pod can take it in place; `apply` turns that into
//! patches of a pod, one batch of containers after the other; `complete` says whether a batch has arrived; `state` is
//! the record in annotations meanwhile. `consistent` is the weaker evidence that injected containers have. `step` leaves a pod to its
//! hook, or begins.

pub(crate) mod apply;
pub(crate) mod change;
pub(crate) mod complete;
pub(crate) mod consistent;
pub(crate) mod hash;
pub(crate) mod resize;
pub(crate) mod state;
pub(crate) mod step;

/// The changes that are possible in place beside metadata and images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InPlaceOptions {
    /// Labels and annotations that a container's environment refers to change with the container, and the update waits for
    /// its restart (the gate `InPlaceUpdateEnvFromMetadata`).
    pub(crate) env_from_metadata: bool,
    /// CPU and memory change in place (the gate `InPlaceWorkloadVerticalScaling`).
    pub(crate) vertical_scaling: bool,
}

impl Default for InPlaceOptions {
    /// Those of OpenKruise 1.9.
    fn default() -> Self {
        Self {
            env_from_metadata: true,
            vertical_scaling: false,
        }
    }
}
