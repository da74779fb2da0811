//! Group `apps.kruise.io`, version `v1beta1`.

mod sidecar_set;
mod stateful_set;

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
