//! The input of a plan: one moment of a DaemonSet, of its pods and revisions, and of the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;

use crate::api::v1beta1::DaemonSet;
use crate::api::v1beta1::ImagePullJob;
use crate::pods::{CachedNode, CachedPod};

/// One moment of a DaemonSet.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The set.
    pub(super) set: Arc<DaemonSet>,
    /// All nodes, by name.
    pub(super) nodes: Vec<Arc<CachedNode>>,
    /// Its pods.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// Its revisions, those without an owner included.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
    /// The nodes whose failed pods stay for now, and for how long they do.
    pub(super) held: BTreeMap<String, Duration>,
    /// Its jobs that pull images.
    pub(super) jobs: Vec<Arc<ImagePullJob>>,
    /// When.
    pub(super) now: Timestamp,
}
