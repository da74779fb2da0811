//! One moment of a request and its pod.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::v1alpha1::ContainerRecreateRequest;
use crate::pods::CachedPod;

/// The facts of one pass.
pub(super) struct Observed {
    /// The request.
    pub(super) request: Arc<ContainerRecreateRequest>,
    /// The pod of its name.
    pub(super) pod: Option<Arc<CachedPod>>,
    /// The time.
    pub(super) now: Timestamp,
}
