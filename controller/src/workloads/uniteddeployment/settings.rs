//! Settings of a UnitedDeployment with their defaults.

use jiff::SignedDuration;

use crate::api::v1alpha1::UnitedDeployment;

/// How many revisions are kept unless the spec says otherwise.
pub(super) const DEFAULT_HISTORY_LIMIT: i32 = 10;
/// How many seconds a pod may wait for a node unless the spec says otherwise.
const DEFAULT_CRITICAL_S: i32 = 30;
/// For how many seconds a subset gets no further pods unless the spec says otherwise.
const DEFAULT_LEFT_OUT_S: i32 = 300;

/// Whether pods that get no node move on to other subsets.
pub(super) fn is_adaptive(set: &UnitedDeployment) -> bool {
    set.spec.topology.schedule_strategy.kind == "Adaptive"
}

/// Whether pods that get no node stay, and others stand in for them.
pub(super) fn is_reserving(set: &UnitedDeployment) -> bool {
    let adaptive = set.spec.topology.schedule_strategy.adaptive.as_ref();
    is_adaptive(set) && adaptive.is_some_and(|adaptive| adaptive.reserve_unschedulable_pods)
}

/// How long a pod may wait for a node.
pub(super) fn critical(set: &UnitedDeployment) -> SignedDuration {
    let adaptive = set.spec.topology.schedule_strategy.adaptive.as_ref();
    let seconds = adaptive.and_then(|adaptive| adaptive.reschedule_critical_seconds);
    SignedDuration::from_secs(i64::from(seconds.unwrap_or(DEFAULT_CRITICAL_S)))
}

/// For how long a subset gets no further pods; with pods that stay, how long one must have been ready to count.
pub(super) fn left_out(set: &UnitedDeployment) -> SignedDuration {
    let adaptive = set.spec.topology.schedule_strategy.adaptive.as_ref();
    let seconds = adaptive.and_then(|adaptive| adaptive.unschedulable_duration);
    SignedDuration::from_secs(i64::from(seconds.unwrap_or(DEFAULT_LEFT_OUT_S)))
}

/// How many revisions are kept.
pub(super) fn history_limit(set: &UnitedDeployment) -> usize {
    let limit = set.spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY_LIMIT);
    usize::try_from(limit).unwrap_or(0)
}

/// How many pods of a subset keep the old revision by the spec.
pub(super) fn partition(set: &UnitedDeployment, subset: &str) -> i32 {
    let strategy = &set.spec.update_strategy;
    let manual = strategy
        .manual_update
        .as_ref()
        .filter(|_| strategy.kind == "Manual");
    let partition = manual.and_then(|manual| manual.partitions.get(subset));
    partition.copied().unwrap_or(0)
}
