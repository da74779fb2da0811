//! Group `apps.kruise.io`, version `v1beta1`.

mod advanced_cron_job;
mod broadcast_job;
mod daemon_set;
mod image_list_pull_job;
mod image_pull_job;
mod image_pull_template;
mod node_image;
mod sidecar_set;
mod stateful_set;

pub use crate::shared::{
    InPlaceUpdateStrategy, Lifecycle, LifecycleHook, OrderPriorityTerm, ScatterTerm, UpdatePriorityStrategy,
    WeightPriorityTerm,
};
pub use advanced_cron_job::{
    AdvancedCronJob, AdvancedCronJobSpec, AdvancedCronJobStatus, BroadcastJobTemplate, CronJobTemplate,
    ImageListPullJobTemplate,
};
pub use broadcast_job::{
    BroadcastJob, BroadcastJobSpec, BroadcastJobStatus, CompletionPolicy, FailurePolicy, JobCondition,
};
pub use daemon_set::{
    DaemonSet, DaemonSetCondition, DaemonSetScaleStrategy, DaemonSetSpec, DaemonSetStatus,
    DaemonSetUpdateStrategy, RollingUpdateDaemonSetStrategy,
};
pub use image_list_pull_job::{
    FailedImageStatus, ImageListPullJob, ImageListPullJobSpec, ImageListPullJobStatus,
};
pub use image_pull_job::{ImagePullJob, ImagePullJobSpec, ImagePullJobStatus};
pub use image_pull_template::{ImageNodeSelector, ImagePullJobTemplate, PullPolicy, SandboxConfig};
pub use node_image::{
    ImageSpec, ImageStatus, ImageTagPullPolicy, ImageTagSpec, ImageTagStatus, NodeImage, NodeImageSpec,
    NodeImageStatus, ReferenceObject, SyncStatus,
};
pub use sidecar_set::{
    PodField, PullSecret, ResourceExprs, ResourcesExpr, ResourcesPolicy, ShareVolumePolicy, SidecarContainer,
    SidecarContainerUpgradeStrategy, SidecarSet, SidecarSetInjectRevision, SidecarSetInjectionStrategy,
    SidecarSetPatchPodMetadata, SidecarSetSpec, SidecarSetStatus, SidecarSetUpdateStrategy,
    SourceContainerNameSource, TransferEnvVar,
};
pub use stateful_set::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetClaimRetentionPolicy,
    StatefulSetClaimUpdateStrategy, StatefulSetCondition, StatefulSetOrdinals, StatefulSetScaleStrategy,
    StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy, UnorderedUpdateStrategy,
    VolumeClaimStatus,
};
