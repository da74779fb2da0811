//! The input of a plan: one moment of a StatefulSet and of its pods, claims and revisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::api::v1beta1::ImagePullJob;
use crate::api::v1beta1::StatefulSet;
use crate::pods::CachedPod;

/// One moment of a StatefulSet.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The set.
    pub(super) set: Arc<StatefulSet>,
    /// Its pods, by ordinal.
    pub(super) pods: BTreeMap<i32, Arc<CachedPod>>,
    /// The claims of its ordinals, by name.
    pub(super) claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// Its revisions, those without an owner included.
    pub(super) revisions: Vec<Arc<ControllerRevision>>,
    /// Its jobs that pull images.
    pub(super) jobs: Vec<Arc<ImagePullJob>>,
    /// When.
    pub(super) now: Timestamp,
}
