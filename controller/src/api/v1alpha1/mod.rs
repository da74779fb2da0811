//! Group `apps.kruise.io`, version `v1alpha1`.

mod cloneset;
mod image_pull_job;
mod lifecycle;
mod status;
mod strategy;

pub use cloneset::{CloneSet, CloneSetSpec};
pub use image_pull_job::{ImagePullJob, ImagePullJobSpec};
pub use lifecycle::{Lifecycle, LifecycleHook};
pub use status::{CloneSetCondition, CloneSetStatus};
pub use strategy::{
    CloneSetScaleStrategy, CloneSetUpdateStrategy, InPlaceUpdateStrategy, OrderPriorityTerm, ScatterTerm,
    UpdatePriorityStrategy, WeightPriorityTerm,
};

/// The schema of a field whose content the server does not look into (`x-kubernetes-preserve-unknown-fields`).
fn schemaless(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
