//! Queueing hints: each filter says whether a change may help a pod that it has refused. Pure.
//!
//! [`nodes`], [`pods`], [`volumes`] and [`devices`] have the filters' hints, grouped by the objects that the filters look at.

mod devices;
mod nodes;
mod pods;
mod volumes;

use machinery::meta::at;
use shared_json::Value;

use super::cluster::{Cluster, PodInfo};
use super::filters::Filter;

/// A change of an object: its old version, unless it is new, and its new one, unless it is gone.
pub(super) enum Event<'a> {
    Node(NodeEvent<'a>),
    /// A pod that has a node.
    Pod(Option<&'a PodInfo>, Option<&'a PodInfo>),
    /// The pod itself.
    Own(&'a PodInfo, &'a PodInfo),
    Claim(Option<&'a Value>, &'a Value),
    Volume(Option<&'a Value>, &'a Value),
    Class(Option<&'a Value>, &'a Value),
    /// The drivers of a node (CSINode).
    Drivers(Option<&'a Value>, &'a Value),
    DeviceClaim(Option<&'a Value>, &'a Value),
    DeviceClass(Option<&'a Value>, &'a Value),
    Slice,
}

/// A node, and its changed parts.
pub(super) struct NodeEvent<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    /// Its taints, or that it takes pods again.
    taints: bool,
    labels: bool,
    allocatable: bool,
    declared: bool,
}

impl<'a> NodeEvent<'a> {
    pub(super) fn of(old: Option<&'a Value>, new: Option<&'a Value>) -> Self {
        let differs = |path: &str| match (old, new) {
            (Some(old), Some(new)) => at(old, path) != at(new, path),
            _ => false,
        };
        Self {
            taints: differs("spec.taints") || nodes::takes_pods_again(old, new),
            labels: differs("metadata.labels"),
            allocatable: differs("status.allocatable"),
            declared: differs("status.declaredFeatures"),
            old,
            new,
        }
    }

    fn is_new(&self) -> bool {
        self.old.is_none()
    }
}

impl Event<'_> {
    /// The filters that have anything to say about such a change.
    pub(super) fn concerns(&self) -> &'static [Filter] {
        use Filter as F;
        match self {
            Self::Node(node) if node.new.is_none() => &[F::Spread],
            Self::Node(node) if node.is_new() => &[
                F::Unschedulable,
                F::Name,
                F::Taints,
                F::NodeAffinity,
                F::Ports,
                F::Resources,
                F::VolumeInUse,
                F::VolumeBinding,
                F::VolumeZone,
                F::Spread,
                F::PodAffinity,
                F::Devices,
                F::DeclaredFeatures,
            ],
            Self::Node(node) if node.taints || node.labels || node.allocatable => &[
                F::Unschedulable,
                F::Taints,
                F::NodeAffinity,
                F::Resources,
                F::VolumeBinding,
                F::VolumeZone,
                F::Spread,
                F::PodAffinity,
                F::Devices,
                F::DeclaredFeatures,
            ],
            Self::Node(node) if node.declared => &[F::DeclaredFeatures],
            Self::Node(_) => &[],
            Self::Pod(Some(_), None) => &[
                F::Ports,
                F::Resources,
                F::VolumeInUse,
                F::VolumeLimits,
                F::Spread,
                F::PodAffinity,
            ],
            // Most changes of pods are of their status, and concern nobody.
            Self::Pod(Some(old), Some(new))
                if old.requests == new.requests && old.labels() == new.labels() =>
            {
                &[]
            }
            Self::Pod(_, _) => &[F::Resources, F::Spread, F::PodAffinity],
            Self::Own(_, _) => &[
                F::Unschedulable,
                F::Taints,
                F::Resources,
                F::Spread,
                F::PodAffinity,
                F::Devices,
                F::DeclaredFeatures,
            ],
            Self::Claim(_, _) => &[F::VolumeInUse, F::VolumeLimits, F::VolumeBinding, F::VolumeZone],
            Self::Volume(_, _) | Self::Class(_, _) => &[F::VolumeBinding, F::VolumeZone],
            Self::Drivers(_, _) => &[F::VolumeLimits, F::VolumeBinding],
            Self::DeviceClass(_, _) => &[F::Resources, F::Devices],
            Self::DeviceClaim(_, _) | Self::Slice => &[F::Devices],
        }
    }

    /// Whether a filter that has refused a pod might not do so any more.
    pub(super) fn may_help(&self, filter: Filter, pod: &PodInfo, cluster: &Cluster) -> bool {
        match filter {
            Filter::Unschedulable => nodes::unschedulable(self, pod),
            Filter::Name => true,
            Filter::Taints => nodes::taints(self, pod),
            Filter::NodeAffinity => nodes::affinity(self, pod),
            Filter::Resources => nodes::resources(self, pod, cluster),
            Filter::Ports => pods::ports(self, pod),
            Filter::Spread => pods::spread(self, pod),
            Filter::PodAffinity => pods::affinity(self, pod, cluster),
            Filter::VolumeInUse => volumes::in_use(self, pod),
            Filter::VolumeLimits => volumes::limits(self, pod),
            Filter::VolumeBinding => volumes::binding(self, pod),
            Filter::VolumeZone => volumes::zone(self, pod),
            Filter::Devices => devices::devices(self, pod, cluster),
            Filter::DeclaredFeatures => nodes::declared_features(self),
        }
    }
}

/// The real one counts tolerations: they can be added, and neither changed nor taken away.
fn tolerates_more(old: &PodInfo, new: &PodInfo) -> bool {
    let count = |pod: &PodInfo| super::cluster::list(&pod.object, "spec.tolerations").len();
    count(old) != count(new)
}

#[cfg(test)]
mod tests;
