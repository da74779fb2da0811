//! The input of a plan: one moment of a node and its probes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::v1alpha1::{NodePodProbe, PodProbeMarker};
use crate::kit::ObjectKey;
use crate::pods::{CachedNode, CachedPod};

/// One moment of a node and its probes.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// The probes, if there is an object for them.
    pub(super) probes: Option<Arc<NodePodProbe>>,
    /// The node, if there is one.
    pub(super) node: Option<Arc<CachedNode>>,
    /// The pods that the object names, as far as they are there.
    pub(super) pods: BTreeMap<ObjectKey, Arc<CachedPod>>,
    /// The markers that results name, as far as they are there.
    pub(super) markers: BTreeMap<ObjectKey, Arc<PodProbeMarker>>,
}
