//! The order in which pods are updated.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::{active, priority, scatter};
use crate::api::v1alpha1::CloneSetUpdateStrategy;
use crate::cloneset::lifecycle;

/// Sorts the pods that wait for an update: the least useful first, then by priority, then scattered; those that are
/// already held by a hook for the update before all others.
pub(crate) fn sort(
    mut waiting: Vec<Arc<Pod>>,
    all: &[Arc<Pod>],
    strategy: Option<&CloneSetUpdateStrategy>,
) -> Vec<Arc<Pod>> {
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
