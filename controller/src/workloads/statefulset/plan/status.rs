//! The status of a set.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::claims;
use super::view::{View, is_running_and_ready, is_terminating};
use crate::api::v1beta1::{StatefulSetCondition, StatefulSetStatus};
use crate::kit::selector;
use crate::pods::availability::has_revision;
use crate::pods::pod;

/// The condition of a pod that could not be created.
pub(in crate::workloads::statefulset) const FAILED_CREATE: &str = "FailedCreatePod";
/// The condition of a pod that could not be updated.
pub(in crate::workloads::statefulset) const FAILED_UPDATE: &str = "FailedUpdatePod";

/// The status of the observed set. `left` pods of the current revision are updated or deleted by the pass itself, and do not
/// count as current any more.
pub(super) fn plan(view: &View<'_>, left: i32) -> StatefulSetStatus {
    let set = view.set();
    let revisions = view.revisions;
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation.unwrap_or(0),
        current_revision: revisions.current.name.clone(),
        update_revision: revisions.update.name.clone(),
        collision_count: Some(revisions.collision_count),
        label_selector: selector::text(&set.spec.selector),
        volume_claims: claims::status(view),
        ..StatefulSetStatus::default()
    };
    for pod in view.all_pods() {
        let (ready, available) = (is_running_and_ready(pod), view.is_available(pod));
        let (updated, stays) = (view.is_updated(pod), !is_terminating(pod));
        let created = !pod::phase(pod).is_empty();
        status.replicas += i32::from(created);
        status.ready_replicas += i32::from(ready);
        status.available_replicas += i32::from(available);
        status.updated_ready_replicas += i32::from(ready && updated);
        status.updated_available_replicas += i32::from(available && updated);
        if created && stays {
            status.updated_replicas += i32::from(updated);
            status.current_replicas += i32::from(has_revision(pod, &revisions.current.name));
        }
    }
    status.current_replicas -= left;
    let complete = status.updated_replicas == status.replicas && status.ready_replicas == status.replicas;
    if view.settings.rolling && complete {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}

/// Adds the condition of a failure; `old` keeps the time of one that was there already.
pub(in crate::workloads::statefulset) fn add_failure(
    status: &mut StatefulSetStatus,
    old: &StatefulSetStatus,
    kind: &str,
    error: &str,
    now: Timestamp,
) {
    let what = if kind == FAILED_CREATE { "create" } else { "update" };
    let before = old.conditions.iter().find(|condition| condition.kind == kind);
    let time = before.and_then(|condition| condition.last_transition_time.clone());
    status.conditions.push(StatefulSetCondition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        last_transition_time: Some(time.unwrap_or(Time(now))),
        reason: None,
        message: Some(format!("StatefulPodControl failed to {what} Pod error: {error}")),
    });
}

/// Whether `new` is worth a write: anything but the times of conditions differs.
pub(in crate::workloads::statefulset) fn differs(new: &StatefulSetStatus, old: &StatefulSetStatus) -> bool {
    let timeless = |status: &StatefulSetStatus| {
        let mut status = status.clone();
        for condition in &mut status.conditions {
            condition.last_transition_time = None;
        }
        status
    };
    timeless(new) != timeless(old)
}
