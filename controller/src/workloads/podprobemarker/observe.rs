//! The input of a plan: one moment of a marker, its pods and the probes of nodes.

use std::sync::Arc;

use crate::api::v1alpha1::{NodePodProbe, PodProbeMarker};
use crate::pods::CachedPod;

/// One moment of a marker.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The marker.
    pub(super) marker: Arc<PodProbeMarker>,
    /// The pods that it selects on nodes with a kubelet.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// The pods that it selects on virtual nodes.
    pub(super) serverless: Vec<Arc<CachedPod>>,
    /// The probes of all nodes.
    pub(super) probes: Vec<Arc<NodePodProbe>>,
    /// Whether pods on virtual nodes are marked.
    pub(super) marks_serverless: bool,
}
