//! The input of a plan: one moment of a node and of its list of images.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::api::v1beta1::{NodeImage, ReferenceObject};
use crate::pods::CachedNode;

/// One moment of a node and of its list.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The node, if there is one.
    pub(super) node: Option<Arc<CachedNode>>,
    /// Its list, if there is one.
    pub(super) image: Option<Arc<NodeImage>>,
    /// The uids of the jobs that the list names and that are there; nothing where jobs are not watched.
    pub(super) jobs: Option<BTreeSet<String>>,
    /// The Secrets that the list names and that are not there.
    pub(super) missing_secrets: Vec<ReferenceObject>,
    /// How long a pass waits that would come too soon.
    pub(super) rest: Duration,
    /// When.
    pub(super) now: Timestamp,
}
