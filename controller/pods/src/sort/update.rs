//! The order in which pods are updated.

use std::sync::Arc;

use kruise_api::v1alpha1::{ScatterTerm, UpdatePriorityStrategy};

use super::{active, priority, scatter};
use crate::CachedPod;
use crate::lifecycle;

/// A set's settings for the order.
#[derive(Debug, Clone, Copy)]
pub struct UpdateOrder<'a> {
    /// Which pods go first.
    pub priority: Option<&'a UpdatePriorityStrategy>,
    /// Which pods do not go in a row.
    pub scatter: &'a [ScatterTerm],
}

/// Sorts the pods that wait for an update: the least useful first, then by priority, then scattered; those that are
/// already held by a hook for the update before all others.
pub fn sort(
    waiting: Vec<Arc<CachedPod>>,
    all: &[Arc<CachedPod>],
    order: UpdateOrder<'_>,
) -> Vec<Arc<CachedPod>> {
    let mut waiting = without_hooks(waiting, all, order);
    waiting.sort_by_key(|pod| lifecycle::state_of(pod) != lifecycle::state::PREPARING_UPDATE);
    waiting
}

/// The same where hooks do not matter.
pub fn without_hooks(
    mut waiting: Vec<Arc<CachedPod>>,
    all: &[Arc<CachedPod>],
    order: UpdateOrder<'_>,
) -> Vec<Arc<CachedPod>> {
    waiting.sort_by(|one, other| active::compare(one, other));
    if let Some(priorities) = order.priority {
        priority::sort(&mut waiting, priorities);
    }
    if !order.scatter.is_empty() {
        waiting = scatter::sort(waiting, all, order.scatter);
    }
    waiting
}
