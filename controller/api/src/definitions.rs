//! The CustomResourceDefinitions that OpenKruise 1.9.0 installs, as JSON.
//!
//! They are its own: versions, columns, defaults and rules are those of its release. The types of this crate derive definitions,
//! too (`kube::CustomResourceExt`); a test holds that both have the same fields in the version that is stored.

/// The definition of AdvancedCronJob.
pub const ADVANCEDCRONJOBS: &str = include_str!("../crds/advancedcronjobs.apps.kruise.io.json");
/// The definition of BroadcastJob.
pub const BROADCASTJOBS: &str = include_str!("../crds/broadcastjobs.apps.kruise.io.json");
/// The definition of CloneSet.
pub const CLONESETS: &str = include_str!("../crds/clonesets.apps.kruise.io.json");
/// The definition of ContainerRecreateRequest.
pub const CONTAINERRECREATEREQUESTS: &str =
    include_str!("../crds/containerrecreaterequests.apps.kruise.io.json");
/// The definition of DaemonSet.
pub const DAEMONSETS: &str = include_str!("../crds/daemonsets.apps.kruise.io.json");
/// The definition of EphemeralJob.
pub const EPHEMERALJOBS: &str = include_str!("../crds/ephemeraljobs.apps.kruise.io.json");
/// The definition of ImageListPullJob.
pub const IMAGELISTPULLJOBS: &str = include_str!("../crds/imagelistpulljobs.apps.kruise.io.json");
/// The definition of ImagePullJob.
pub const IMAGEPULLJOBS: &str = include_str!("../crds/imagepulljobs.apps.kruise.io.json");
/// The definition of NodeImage.
pub const NODEIMAGES: &str = include_str!("../crds/nodeimages.apps.kruise.io.json");
/// The definition of NodePodProbe.
pub const NODEPODPROBES: &str = include_str!("../crds/nodepodprobes.apps.kruise.io.json");
/// The definition of PersistentPodState.
pub const PERSISTENTPODSTATES: &str = include_str!("../crds/persistentpodstates.apps.kruise.io.json");
/// The definition of PodProbeMarker.
pub const PODPROBEMARKERS: &str = include_str!("../crds/podprobemarkers.apps.kruise.io.json");
/// The definition of PodUnavailableBudget.
pub const PODUNAVAILABLEBUDGETS: &str = include_str!("../crds/podunavailablebudgets.policy.kruise.io.json");
/// The definition of ResourceDistribution.
pub const RESOURCEDISTRIBUTIONS: &str = include_str!("../crds/resourcedistributions.apps.kruise.io.json");
/// The definition of SidecarSet.
pub const SIDECARSETS: &str = include_str!("../crds/sidecarsets.apps.kruise.io.json");
/// The definition of StatefulSet.
pub const STATEFULSETS: &str = include_str!("../crds/statefulsets.apps.kruise.io.json");
/// The definition of UnitedDeployment.
pub const UNITEDDEPLOYMENTS: &str = include_str!("../crds/uniteddeployments.apps.kruise.io.json");
/// The definition of WorkloadSpread.
pub const WORKLOADSPREADS: &str = include_str!("../crds/workloadspreads.apps.kruise.io.json");

/// All of them, in the order of their names.
pub const ALL: [&str; 18] = [
    ADVANCEDCRONJOBS,
    BROADCASTJOBS,
    CLONESETS,
    CONTAINERRECREATEREQUESTS,
    DAEMONSETS,
    EPHEMERALJOBS,
    IMAGELISTPULLJOBS,
    IMAGEPULLJOBS,
    NODEIMAGES,
    NODEPODPROBES,
    PERSISTENTPODSTATES,
    PODPROBEMARKERS,
    PODUNAVAILABLEBUDGETS,
    RESOURCEDISTRIBUTIONS,
    SIDECARSETS,
    STATEFULSETS,
    UNITEDDEPLOYMENTS,
    WORKLOADSPREADS,
];

#[cfg(test)]
#[path = "definitions_tests.rs"]
mod tests;
