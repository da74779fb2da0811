//! The input of a plan: one moment of a PersistentPodState, of its set, of the pods and the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::targets::Target;
use crate::api::v1alpha1::PersistentPodState;
use crate::pods::{CachedNode, CachedPod};

/// One moment of a PersistentPodState.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// It.
    pub(super) state: Arc<PersistentPodState>,
    /// Its set, unless that is gone or going.
    pub(super) target: Option<Target>,
    /// The pods of the set.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// The nodes, by name.
    pub(super) nodes: BTreeMap<String, Arc<CachedNode>>,
}
