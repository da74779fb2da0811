//! The input of a plan: one moment of an EphemeralJob and of the pods that it selects.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::v1alpha1::EphemeralJob;
use crate::pods::CachedPod;

/// One moment of an EphemeralJob.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The job.
    pub(super) job: Arc<EphemeralJob>,
    /// The pods that it selects, in any order.
    pub(super) pods: Vec<Arc<CachedPod>>,
    /// When.
    pub(super) now: Timestamp,
}
