//! The status of a set.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::view::View;
use crate::api::v1alpha1::{CloneSetCondition, CloneSetStatus};
use crate::kit::selector;
use crate::pods::counts;
use crate::pods::refresh::shortest;

/// The condition of a failed scaling.
pub(crate) const FAILED_SCALE: &str = "FailedScale";
/// The condition of a failed update.
pub(crate) const FAILED_UPDATE: &str = "FailedUpdate";
const PROGRESSING: &str = "Progressing";
/// A deadline that means none.
const NO_DEADLINE: i32 = i32::MAX;

/// The status of the observed set, and when it changes by itself at the latest.
///
/// Counts are those of the moment before the pass acts, as in OpenKruise. Conditions of failures are left out: a pass that
/// fails adds its own.
pub(crate) fn plan(view: &View<'_>) -> (CloneSetStatus, Option<Duration>) {
    let set = view.set();
    let old = set.status.clone().unwrap_or_default();
    let mut status = CloneSetStatus {
        observed_generation: set.metadata.generation.unwrap_or(0),
        update_revision: view.revisions.update.name.clone(),
        current_revision: view.revisions.current.name.clone(),
        collision_count: Some(view.revisions.collision_count),
        label_selector: selector::text(&set.spec.selector),
        expected_updated_replicas: view.settings.replicas - view.settings.partition,
        ..CloneSetStatus::default()
    };
    let revision = &view.revisions.update.name;
    let (counts, mut requeue) = counts::count(&view.pods, revision, view.settings.min_ready_s, view.now());
    status.replicas = counts.all;
    status.ready_replicas = counts.ready;
    status.available_replicas = counts.available;
    status.updated_replicas = counts.updated;
    status.updated_ready_replicas = counts.updated_ready;
    status.updated_available_replicas = counts.updated_available;
    let complete = status.updated_replicas == status.replicas && status.replicas == view.settings.replicas;
    if complete {
        status.current_revision.clone_from(&status.update_revision);
    }
    if let Some((condition, delay)) = progressing(view, &status, &old) {
        status.conditions.push(condition);
        requeue = shortest(requeue, delay);
    }
    (status, requeue)
}

/// The condition `Progressing`, for sets that ask for it, and when its deadline passes.
fn progressing(
    view: &View<'_>,
    new: &CloneSetStatus,
    old: &CloneSetStatus,
) -> Option<(CloneSetCondition, Option<Duration>)> {
    let deadline_s = view
        .set()
        .spec
        .progress_deadline_seconds
        .filter(|deadline| *deadline != NO_DEADLINE)?;
    let before = old
        .conditions
        .iter()
        .find(|condition| condition.kind == PROGRESSING);
    let replicas = view.settings.replicas;
    let same_revision = new.update_revision == old.update_revision;
    let counts = |s: &CloneSetStatus| {
        (
            s.replicas,
            s.updated_replicas,
            s.updated_ready_replicas,
            s.updated_available_replicas,
        )
    };
    let moved = !same_revision || counts(new) != counts(old);
    let last = before
        .and_then(|condition| condition.last_update_time.as_ref())
        .map(|time| time.0);
    let since = match last {
        Some(last) if !moved => last,
        _ => view.now(),
    };
    let deadline = since
        .checked_add(Duration::from_secs(u64::try_from(deadline_s).unwrap_or(0)))
        .ok()?;
    let exceeded_before =
        same_revision && before.is_some_and(|c| c.reason.as_deref() == Some("ProgressDeadlineExceeded"));

    let mut delay = None;
    let (status, reason, message) = if new.current_revision == new.update_revision
        && [new.replicas, new.updated_replicas, new.updated_available_replicas]
            .iter()
            .all(|count| *count == replicas)
    {
        ("True", "CloneSetAvailable", "CloneSet is available".to_owned())
    } else if view.settings.paused {
        ("True", "CloneSetPaused", "CloneSet is paused".to_owned())
    } else if new.expected_updated_replicas < replicas
        && new.expected_updated_replicas <= new.updated_available_replicas
    {
        (
            "True",
            "ProgressPartitionAvailable",
            "CloneSet has been paused due to partition ready".to_owned(),
        )
    } else if exceeded_before || deadline < view.now() {
        let message = format!(
            "CloneSet revision {} has timed out progressing",
            new.update_revision
        );
        ("False", "ProgressDeadlineExceeded", message)
    } else {
        let left = Duration::try_from(deadline.duration_since(view.now())).unwrap_or(Duration::ZERO);
        delay = Some(left + Duration::from_secs(1));
        ("True", "CloneSetUpdated", "CloneSet is progressing".to_owned())
    };
    let same = before.is_some_and(|condition| condition.status == status);
    let transition = before
        .filter(|_| same)
        .and_then(|condition| condition.last_transition_time.clone());
    let condition = CloneSetCondition {
        kind: PROGRESSING.to_owned(),
        status: status.to_owned(),
        last_update_time: Some(Time(since)),
        last_transition_time: Some(transition.unwrap_or(Time(view.now()))),
        reason: Some(reason.to_owned()),
        message: Some(message),
    };
    Some((condition, delay))
}

/// Adds the condition of a failure to `status`; `old` keeps the time of one that was there already.
pub(crate) fn add_failure(
    status: &mut CloneSetStatus,
    old: &CloneSetStatus,
    kind: &str,
    message: &str,
    now: jiff::Timestamp,
) {
    let before = old.conditions.iter().find(|condition| condition.kind == kind);
    let time = before
        .and_then(|condition| condition.last_transition_time.clone())
        .unwrap_or(Time(now));
    status.conditions.retain(|condition| condition.kind != kind);
    status.conditions.push(CloneSetCondition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        last_transition_time: Some(time),
        message: Some(message.to_owned()),
        ..CloneSetCondition::default()
    });
}

/// Whether `new` is worth a write: anything but the times of conditions differs.
pub(crate) fn differs(new: &CloneSetStatus, old: &CloneSetStatus) -> bool {
    let timeless = |status: &CloneSetStatus| {
        let mut status = status.clone();
        for condition in &mut status.conditions {
            condition.last_update_time = None;
            condition.last_transition_time = None;
        }
        status
    };
    timeless(new) != timeless(old)
}
