//! Conditions: of the whole, and of subsets.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1alpha1::{
    SubsetCondition, SubsetStatus, UnitedDeploymentCondition, UnitedDeploymentStatus,
};

/// Whether all pods have the update revision.
pub(super) const UPDATED: &str = "UnitedDeploymentUpdated";
/// Whether each subset has its workload.
pub(in crate::workloads::uniteddeployment) const PROVISIONED: &str = "SubsetProvisioned";
/// Whether the workloads are as they are to be.
pub(in crate::workloads::uniteddeployment) const SUBSETS_UPDATED: &str = "SubsetUpdated";
/// Whether pods of a subset get nodes.
pub(super) const SCHEDULABLE: &str = "Schedulable";

/// The value of a condition.
fn truth(is_true: bool) -> &'static str {
    if is_true { "True" } else { "False" }
}

/// The condition of that type.
pub(super) fn condition<'s>(
    status: &'s UnitedDeploymentStatus,
    kind: &str,
) -> Option<&'s UnitedDeploymentCondition> {
    status.conditions.iter().find(|condition| condition.kind == kind)
}

/// Sets a condition. One whose status or reason changes goes to the end of the list; its time changes with its status. Otherwise the
/// message alone is brought up to date.
pub(in crate::workloads::uniteddeployment) fn set(
    status: &mut UnitedDeploymentStatus,
    kind: &str,
    is_true: bool,
    (reason, message): (&str, String),
    now: Timestamp,
) {
    let value = truth(is_true);
    let at = status.conditions.iter().position(|known| known.kind == kind);
    let known = at.and_then(|at| status.conditions.get_mut(at));
    if let Some(known) = known
        && known.status == value
        && known.reason == reason
    {
        known.message = message;
        return;
    }
    let old = at.map(|at| status.conditions.remove(at));
    let since = old.filter(|old| old.status == value);
    let since = since.and_then(|old| old.last_transition_time);
    status.conditions.push(UnitedDeploymentCondition {
        kind: kind.to_owned(),
        status: value.to_owned(),
        last_transition_time: since.or(Some(Time(now))),
        reason: reason.to_owned(),
        message,
    });
}

/// Whether pods of a subset got no nodes.
pub(super) fn is_unschedulable(subset: &SubsetStatus) -> bool {
    schedulable(subset).is_some_and(|condition| condition.status == "False")
}

/// The condition of a subset.
pub(super) fn schedulable(subset: &SubsetStatus) -> Option<&SubsetCondition> {
    subset.conditions.iter().find(|known| known.kind == SCHEDULABLE)
}

/// Sets the condition of a subset, unless its status and reason are the same.
pub(super) fn set_schedulable(
    subset: &mut SubsetStatus,
    is_true: bool,
    (reason, message): (&str, String),
    now: Timestamp,
) {
    let value = truth(is_true);
    if schedulable(subset).is_some_and(|known| known.status == value && known.reason == reason) {
        return;
    }
    subset.conditions.retain(|known| known.kind != SCHEDULABLE);
    subset.conditions.push(SubsetCondition {
        kind: SCHEDULABLE.to_owned(),
        status: value.to_owned(),
        last_transition_time: Some(Time(now)),
        reason: reason.to_owned(),
        message,
    });
}
