//! The input of the planner: one moment of a CloneSet and its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::api::v1alpha1::CloneSet;
use crate::api::v1beta1::ImagePullJob;
use crate::pods::CachedPod;

/// One moment of a CloneSet.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The set.
    pub set: Arc<CloneSet>,
    /// The pods it owns, whatever their phase.
    pub pods: Vec<Arc<CachedPod>>,
    /// The claims it owns that do not terminate.
    pub claims: Vec<Arc<PersistentVolumeClaim>>,
    /// Its revisions, those without an owner included.
    pub revisions: Vec<Arc<ControllerRevision>>,
    /// The jobs that pull its images; none are looked at unless their feature gate is on.
    pub jobs: Vec<Arc<ImagePullJob>>,
    /// The labels of nodes, by name; only those that the ranking for deletion needs, so often empty.
    pub nodes: BTreeMap<String, BTreeMap<String, String>>,
    /// When.
    pub now: Timestamp,
}
