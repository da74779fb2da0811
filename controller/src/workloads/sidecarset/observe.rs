//! The input of a plan: one moment of a SidecarSet, of its pods and of its revisions.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;

use crate::api::v1beta1::SidecarSet;
use crate::pods::CachedPod;

/// One moment of a SidecarSet.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The set.
    pub(super) set: Arc<SidecarSet>,
    /// The pods that have its containers, by namespace and name.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// Its revisions.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
    /// When.
    pub(super) now: Timestamp,
}
