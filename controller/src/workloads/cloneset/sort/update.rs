//! The order in which pods are updated.

use std::sync::Arc;

use super::{active, priority, scatter};
use crate::api::v1alpha1::CloneSetUpdateStrategy;
use crate::workloads::cloneset::lifecycle;
use crate::workloads::cloneset::observe::CachedPod;

/// Sorts the pods that wait for an update: the least useful first, then by priority, then scattered; those that are
/// already held by a hook for the update before all others.
pub(crate) fn sort(
    mut waiting: Vec<Arc<CachedPod>>,
    all: &[Arc<CachedPod>],
    strategy: Option<&CloneSetUpdateStrategy>,
) -> Vec<Arc<CachedPod>> {
    waiting.sort_by(|one, other| active::compare(one, other));
    if let Some(strategy) = strategy {
        if let Some(priorities) = &strategy.priority_strategy {
            priority::sort(&mut waiting, priorities);
        }
        if let Some(terms) = strategy
            .scatter_strategy
            .as_deref()
            .filter(|terms| !terms.is_empty())
        {
            waiting = scatter::sort(waiting, all, terms);
        }
    }
    waiting.sort_by_key(|pod| lifecycle::state_of(pod) != lifecycle::state::PREPARING_UPDATE);
    waiting
}
