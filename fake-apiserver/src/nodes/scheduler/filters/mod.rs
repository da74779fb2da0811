//! Where a pod cannot go, and why. A file each, in the order in which the real scheduler asks.

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

pub(crate) use node_affinity::node_matches;
pub(super) use node_affinity::preferred as preferred_nodes;
pub(super) use pod_affinity::terms as affinity_terms;
pub(crate) use ports::ports_clash;
pub(super) use spread::constraints as spread_constraints;
pub(crate) use taints::{tolerates, tolerates_all};
pub(super) use volumes::{claims_of, is_bound, waits_for_consumer};

/// Why a node is not for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reasons: Vec<String>,
    /// Whether it could be, were other pods not there.
    pub resolvable: bool,
}

impl Refusal {
    fn resolvable(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            resolvable: true,
        }
    }

    fn hopeless(reason: &str) -> Self {
        Self {
            reasons: vec![reason.to_owned()],
            resolvable: false,
        }
    }
}

/// What a pod's filters have worked out for all nodes together.
pub(super) struct Cycle<'a> {
    pub pod: &'a Arc<PodInfo>,
    pub cluster: &'a Cluster,
    spread: spread::State,
    affinity: pod_affinity::State,
}

impl<'a> Cycle<'a> {
    /// Looks at the cluster for a pod. The error is what no node can help.
    pub(super) fn new(pod: &'a Arc<PodInfo>, cluster: &'a Cluster) -> Result<Self, String> {
        volumes::check(pod, cluster)?;
        Ok(Self {
            spread: spread::State::new(pod, cluster),
            affinity: pod_affinity::State::new(pod, cluster),
            pod,
            cluster,
        })
    }

    /// Why the pod cannot go to a node, if it cannot.
    pub(super) fn refuse(&self, node: &NodeInfo) -> Option<Refusal> {
        FILTERS.iter().find_map(|filter| filter(self, node))
    }
}

type Filter = fn(&Cycle<'_>, &NodeInfo) -> Option<Refusal>;

const FILTERS: [Filter; 9] = [
    node_state::unschedulable,
    node_state::name,
    taints::filter,
    node_affinity::filter,
    ports::filter,
    resources::filter,
    volumes::filter,
    spread::filter,
    pod_affinity::filter,
];

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
