//! Version `v1alpha1` of the groups `apps.kruise.io` and `policy.kruise.io`.

mod cloneset;
mod container_recreate_request;
mod ephemeral_job;
mod node_pod_probe;
mod persistent_pod_state;
mod pod_probe_marker;
mod pod_unavailable_budget;
mod resource_distribution;
mod status;
mod strategy;
mod united_deployment;
mod workload_spread;

pub use crate::shared::{
    InPlaceUpdateStrategy, Lifecycle, LifecycleHook, OrderPriorityTerm, ScatterTerm, UpdatePriorityStrategy,
    WeightPriorityTerm,
};
pub use cloneset::{CloneSet, CloneSetSpec};
pub use container_recreate_request::{
    ContainerContext, ContainerRecreateRequest, ContainerRecreateRequestSpec, ContainerRecreateRequestStatus,
    ContainerRecreateState, PreStop, RecreateStrategy, RecreatedContainer, SyncedContainer,
};
pub use ephemeral_job::{EphemeralContainerTemplate, EphemeralJob, EphemeralJobSpec, EphemeralJobStatus};
pub use node_pod_probe::{
    ContainerProbe, ContainerProbeState, NodePodProbe, NodePodProbeSpec, NodePodProbeStatus, PodProbe,
    PodProbeStatus,
};
pub use persistent_pod_state::{
    NodeTopology, PersistentPodAnnotation, PersistentPodState, PersistentPodStateSpec,
    PersistentPodStateStatus, PodState, PreferredTopology,
};
pub use pod_probe_marker::{
    PodContainerProbe, PodProbeMarker, PodProbeMarkerSpec, PodProbeMarkerStatus, ProbeMarkerPolicy,
};
pub use pod_unavailable_budget::{
    PodUnavailableBudget, PodUnavailableBudgetSpec, PodUnavailableBudgetStatus, TargetReference,
};
pub use resource_distribution::{
    ResourceDistribution, ResourceDistributionCondition, ResourceDistributionNamespace,
    ResourceDistributionSpec, ResourceDistributionStatus, ResourceDistributionTargetNamespaces,
    ResourceDistributionTargets,
};
pub use status::{CloneSetCondition, CloneSetStatus};
pub use strategy::{CloneSetScaleStrategy, CloneSetUpdateStrategy};
pub use united_deployment::{
    AdaptiveUnitedDeploymentStrategy, ManualUpdate, Subset, SubsetCondition, SubsetStatus, SubsetTemplate,
    UnitedDeployment, UnitedDeploymentCondition, UnitedDeploymentScheduleStrategy, UnitedDeploymentSpec,
    UnitedDeploymentStatus, UnitedDeploymentTopology, UnitedDeploymentUpdateStrategy, UpdateStatus,
    WorkloadTemplate,
};
pub use workload_spread::{
    AdaptiveWorkloadSpreadStrategy, TargetFilter, WorkloadSpread, WorkloadSpreadScheduleStrategy,
    WorkloadSpreadSpec, WorkloadSpreadStatus, WorkloadSpreadSubset, WorkloadSpreadSubsetCondition,
    WorkloadSpreadSubsetStatus,
};
