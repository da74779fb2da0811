//! Updating pods in place.
//!
//! `change` finds the difference between two revisions and whether a pod can take it in place; `apply` turns that into
//! patches of a pod, one batch of containers after the other; `complete` says whether a batch has arrived; `state` is
//! the record in annotations meanwhile. `consistent` is the weaker evidence that injected containers have. `step` leaves a pod to its
//! hook, or begins.

pub mod apply;
pub mod change;
pub mod complete;
pub mod consistent;
pub mod hash;
pub mod resize;
pub mod state;
pub mod step;

/// The changes that are possible in place beside metadata and images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlaceOptions {
    /// Labels and annotations that a container's environment refers to change with the container, and the update waits for
    /// its restart (the gate `InPlaceUpdateEnvFromMetadata`).
    pub env_from_metadata: bool,
    /// CPU and memory change in place (the gate `InPlaceWorkloadVerticalScaling`).
    pub vertical_scaling: bool,
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
