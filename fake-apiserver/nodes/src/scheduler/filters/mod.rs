//! Filters: the nodes that a pod cannot use, with reasons. A file each, in the order of the real scheduler.

mod declared_features;
mod node_affinity;
mod node_state;
mod pod_affinity;
mod ports;
mod resources;
mod spread;
mod taints;
mod volumes;

use std::sync::Arc;

use super::cluster::{Cluster, NodeInfo, PodInfo};
use super::devices;

pub(super) use declared_features::needed as needed_features;
pub(super) use node_affinity::{named, preferences, preferred as preferred_nodes};
pub(super) use pod_affinity::{is_about, terms as affinity_terms};
pub(super) use ports::clash;
pub(crate) use ports::ports_clash;
pub(super) use spread::{
    constraints as spread_constraints, counts as spread_counts, includes_node, selects as spread_selects,
};
pub(super) use volumes::{PLACES as VOLUME_PLACES, claims_of, is_bound, waits_for_consumer};

/// The filters, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filter {
    Unschedulable,
    Name,
    Taints,
    NodeAffinity,
    Ports,
    Resources,
    VolumeInUse,
    VolumeLimits,
    VolumeBinding,
    VolumeZone,
    Spread,
    PodAffinity,
    Devices,
    DeclaredFeatures,
}

/// Why a node is not for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reasons: Vec<String>,
    /// The filter that refuses.
    pub by: Option<Filter>,
    /// Whether it could be, were other pods not there.
    pub resolvable: bool,
    /// Whether the pod's request is invalid.
    pub is_error: bool,
}

impl Refusal {
    fn resolvable(reason: &str) -> Self {
        Self {
            resolvable: true,
            ..Self::hopeless(reason)
        }
    }

    pub(super) fn hopeless(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            by: None,
            resolvable: false,
            is_error: false,
        }
    }

    pub(super) fn error(reason: &str) -> Self {
        Self {
            is_error: true,
            ..Self::hopeless(reason)
        }
    }
}

/// The results of a pod's filters for all nodes together.
pub(super) struct Cycle<'a> {
    pub pod: &'a Arc<PodInfo>,
    pub cluster: &'a Cluster,
    spread: spread::State,
    affinity: pod_affinity::State,
    claims: volumes::State,
    pub devices: devices::State<'a>,
    /// Those that have anything to say about the pod.
    filters: Vec<(Filter, Refuse)>,
}

/// A refusal that no node can help, and its filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hopeless {
    Volumes(Filter, String),
    Devices(String),
}

/// The nodes of a cluster, one of them as it might be.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    cluster: &'a Cluster,
    instead: Option<&'a NodeInfo>,
}

impl<'a> Nodes<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a NodeInfo> {
        self.cluster.nodes.values().map(move |node| {
            self.instead
                .filter(|other| other.name() == node.name())
                .unwrap_or(node)
        })
    }
}

impl<'a> Cycle<'a> {
    /// Looks at the cluster for a pod. The error is a refusal that no node can help.
    pub(super) fn new(pod: &'a Arc<PodInfo>, cluster: &'a Cluster) -> Result<Self, Hopeless> {
        volumes::check(pod, cluster).map_err(|(by, why)| Hopeless::Volumes(by, why))?;
        let devices = devices::State::new(pod, cluster).map_err(Hopeless::Devices)?;
        let nodes = Nodes {
            cluster,
            instead: None,
        };
        Ok(Self::of(pod, nodes, devices))
    }

    fn of(pod: &'a Arc<PodInfo>, nodes: Nodes<'a>, devices: devices::State<'a>) -> Self {
        let mut cycle = Self {
            spread: spread::State::new(pod, nodes),
            affinity: pod_affinity::State::new(pod, nodes),
            claims: volumes::State::new(pod, nodes),
            devices,
            pod,
            cluster: nodes.cluster,
            filters: Vec::new(),
        };
        cycle.filters = FILTERS
            .iter()
            .filter(|(_, concerns, _)| concerns(&cycle))
            .map(|(filter, _, refuse)| (*filter, *refuse))
            .collect();
        cycle
    }

    /// Why the pod cannot go to a node, if it cannot.
    pub(super) fn refuse(&self, node: &NodeInfo) -> Option<Refusal> {
        match self.cluster.with_nominated(node, self.pod) {
            Some(crowded) => self
                .refuse_as_it_is(&crowded)
                .or_else(|| self.refuse_as_it_is(node)),
            None => self.refuse_as_it_is(node),
        }
    }

    fn refuse_as_it_is(&self, node: &NodeInfo) -> Option<Refusal> {
        self.filters.iter().find_map(|(filter, refuse)| {
            let refusal = refuse(self, node)?;
            Some(Refusal {
                by: Some(*filter),
                ..refusal
            })
        })
    }

    /// Why the pod could not go to a node if other pods than now were on it.
    pub(super) fn refuse_if(&self, node: &NodeInfo) -> Option<Refusal> {
        let nodes = Nodes {
            cluster: self.cluster,
            instead: Some(node),
        };
        if !(self.spread.depends_on_pods()
            || self.affinity.depends_on_pods()
            || self.claims.depends_on_pods())
        {
            return self.refuse(node);
        }
        let devices = devices::State::new(self.pod, self.cluster).unwrap_or_default();
        Cycle::of(self.pod, nodes, devices).refuse(node)
    }
}

/// Whether a filter has anything to say about a pod.
type Concerns = fn(&Cycle<'_>) -> bool;
/// Why a node is not for a pod.
type Refuse = fn(&Cycle<'_>, &NodeInfo) -> Option<Refusal>;

const FILTERS: [(Filter, Concerns, Refuse); 14] = [
    (Filter::Unschedulable, |_| true, node_state::unschedulable),
    (Filter::Name, node_state::names_node, node_state::name),
    (Filter::Taints, |_| true, taints::filter),
    (
        Filter::NodeAffinity,
        node_affinity::concerns,
        node_affinity::filter,
    ),
    (Filter::Ports, ports::concerns, ports::filter),
    (Filter::Resources, |_| true, resources::filter),
    (Filter::VolumeInUse, volumes::concern, volumes::in_use),
    (Filter::VolumeLimits, volumes::concern, volumes::limits),
    (Filter::VolumeBinding, volumes::concern, volumes::filter),
    (Filter::VolumeZone, volumes::concern, volumes::zone),
    (Filter::Spread, spread::concerns, spread::filter),
    (Filter::PodAffinity, pod_affinity::concerns, pod_affinity::filter),
    (
        Filter::Devices,
        |cycle| !cycle.devices.is_empty(),
        |cycle, node| cycle.devices.refuse(cycle.cluster, node),
    ),
    (
        Filter::DeclaredFeatures,
        declared_features::concerns,
        declared_features::filter,
    ),
];

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "volume_tests.rs"]
mod volume_tests;
