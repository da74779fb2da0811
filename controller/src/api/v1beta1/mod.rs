//! Group `apps.kruise.io`, version `v1beta1`.

mod daemon_set;
mod sidecar_set;
mod stateful_set;

pub use daemon_set::{
    DaemonSet, DaemonSetCondition, DaemonSetScaleStrategy, DaemonSetSpec, DaemonSetStatus,
    DaemonSetUpdateStrategy, RollingUpdateDaemonSetStrategy,
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
