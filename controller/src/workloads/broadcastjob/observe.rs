//! The input of a plan: one moment of a BroadcastJob, of its pods, and of the nodes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::v1beta1::BroadcastJob;
use crate::pods::{CachedNode, CachedPod};

/// One moment of a BroadcastJob.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The job.
    pub(super) job: Arc<BroadcastJob>,
    /// All nodes, by name.
    pub(super) nodes: Vec<Arc<CachedNode>>,
    /// Its pods, in the order in which they appeared.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// When.
    pub(super) now: Timestamp,
}
