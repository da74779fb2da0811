//! How many pods to add, to remove and to update: the arithmetic, without any pods.

use super::settings::Settings;

/// The numbers of pods of one revision, by their deletion and their availability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// In state `PreparingDelete`.
    pub(crate) preparing_delete: i32,
    /// Marked to be deleted, and not in state `PreparingDelete`.
    pub(crate) to_delete: i32,
    /// Neither of both, and not available.
    pub(crate) unavailable: i32,
    /// Neither of both, and available.
    pub(crate) available: i32,
}

impl Counts {
    fn active(self) -> i32 {
        self.to_delete + self.unavailable + self.available
    }

    fn total(self) -> i32 {
        self.active() + self.preparing_delete
    }
}

/// The input of the arithmetic beside the spec's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Situation {
    /// Pods of the update revision.
    pub(crate) new: Counts,
    /// All other pods.
    pub(crate) old: Counts,
    /// Whether current and update revision are one.
    pub(crate) same_revision: bool,
    /// Whether pods may go back to the current revision (feature gate CloneSetPartitionRollback).
    pub(crate) rollback: bool,
    /// Whether pods in state `PreparingDelete` do not count as there when scaling.
    pub(crate) exclude_preparing_delete: bool,
}

/// The result of the arithmetic: the numbers of pods to create, to delete and to update, and their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Diff {
    /// How many pods are missing.
    pub(crate) scale_up: i32,
    /// How many of them should have the current revision.
    pub(crate) scale_up_old: i32,
    /// How many may be created now.
    pub(crate) scale_up_limit: i32,
    /// How many pods are too many.
    pub(crate) scale_down: i32,
    /// How many of them should not have the update revision.
    pub(crate) scale_down_old: i32,
    /// How many pods that are ready may be deleted now.
    pub(crate) delete_ready_limit: i32,
    /// How many pods should change their revision; below zero, to the current one.
    pub(crate) update: i32,
    /// How many pods may be unavailable in an update.
    pub(crate) update_max_unavailable: i32,
    /// How many pods beyond the replicas are wanted.
    pub(crate) surge: i32,
    /// How many of them should have the current revision.
    pub(crate) surge_old: i32,
}

/// Compares the pods that there are with the settings.
pub(crate) fn diff(settings: &Settings, situation: &Situation) -> Diff {
    let (new, old) = (situation.new, situation.old);
    let pods = new.total() + old.total();
    let to_delete = new.to_delete + old.to_delete;
    let not_available = new.unavailable + old.unavailable;
    let unavailable = new.preparing_delete + old.preparing_delete + not_available;

    let (old_diff, new_diff) = revision_diff(settings, situation);
    let (surge, surge_old) = surge(settings, situation, old_diff, new_diff);
    let mut result = Diff {
        surge,
        surge_old,
        ..Diff::default()
    };

    let excluded = |count: i32| {
        if situation.exclude_preparing_delete {
            count
        } else {
            0
        }
    };
    let total = pods - excluded(new.preparing_delete + old.preparing_delete);
    let total_old = old.total() - excluded(old.preparing_delete);
    let wanted = settings.replicas.saturating_add(surge);
    let wanted_old = settings.partition.saturating_add(surge_old);
    if total < wanted {
        result.scale_up = wanted - total;
        result.scale_up_old = (wanted_old - total_old).max(0);
        result.scale_up_limit = result
            .scale_up
            .min(settings.scale_max_unavailable.saturating_sub(unavailable).max(0));
    }
    // Pods that are marked to be deleted will be, so they need not be chosen again.
    if total - to_delete > wanted {
        result.scale_down = total - to_delete - wanted;
        result.scale_down_old = (total_old - old.to_delete - wanted_old).max(0);
    }
    if to_delete > 0 || result.scale_down > 0 {
        let budget = settings.max_unavailable.saturating_add(pods - settings.replicas);
        result.delete_ready_limit = budget.saturating_sub(unavailable).max(0);
    }
    result.update = if old_diff.abs() <= new_diff.abs() {
        old_diff
    } else {
        -new_diff
    };
    if result.update != 0 {
        result.update_max_unavailable = settings.max_unavailable.saturating_add(pods - settings.replicas);
    }
    result
}

/// By how many pods the old and the new revision are beyond the partition.
fn revision_diff(settings: &Settings, situation: &Situation) -> (i32, i32) {
    let old_diff = situation.old.active() - settings.partition;
    let new_diff = situation.new.active() - (settings.replicas - settings.partition);
    if situation.same_revision || !situation.rollback {
        return (old_diff.max(0), new_diff.min(0));
    }
    (old_diff, new_diff)
}

/// How many pods beyond the replicas are wanted, and how many of them of the current revision. A set never scales and
/// updates in one pass, so the larger of the two needs counts.
fn surge(settings: &Settings, situation: &Situation, old_diff: i32, new_diff: i32) -> (i32, i32) {
    if settings.max_surge <= 0 {
        return (0, 0);
    }
    let (new, old) = (situation.new, situation.old);
    let to_delete = new.to_delete + old.to_delete;
    let for_deletion = (new.unavailable + old.unavailable + to_delete)
        .saturating_sub(settings.max_unavailable)
        .max(0)
        .min(to_delete);
    let for_deletion_old = (for_deletion - new.to_delete).max(0);

    let opposite = (old_diff > 0 && new_diff < 0) || (old_diff < 0 && new_diff > 0);
    let (for_update, for_update_old) = match opposite {
        false => (0, 0),
        true if old_diff.abs() <= new_diff.abs() => {
            (old_diff.abs(), if old_diff < 0 { old_diff.abs() } else { 0 })
        }
        true => (new_diff.abs(), new_diff.max(0)),
    };
    let (wanted, wanted_old) = if for_deletion >= for_update {
        (for_deletion, for_deletion_old)
    } else {
        (for_update, for_update_old)
    };
    let surge = settings.max_surge.min(wanted);
    (surge, surge.min(wanted_old))
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
