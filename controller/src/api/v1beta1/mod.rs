//! Group `apps.kruise.io`, version `v1beta1`.

mod stateful_set;

pub use stateful_set::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetClaimRetentionPolicy,
    StatefulSetClaimUpdateStrategy, StatefulSetCondition, StatefulSetOrdinals, StatefulSetScaleStrategy,
    StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy, UnorderedUpdateStrategy,
    VolumeClaimStatus,
};
