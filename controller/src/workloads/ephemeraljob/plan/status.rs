//! The status of a job.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::counts::Counts;
use crate::api::v1alpha1::{EphemeralJob, EphemeralJobStatus};
use crate::api::v1beta1::JobCondition;
use crate::kit::ObjectKey;

/// The phases of a job.
pub(super) mod phase {
    pub(crate) const WAITING: &str = "Waiting";
    pub(crate) const RUNNING: &str = "Running";
    pub(crate) const SUCCEEDED: &str = "Succeeded";
    pub(crate) const FAILED: &str = "Failed";
    pub(crate) const PAUSED: &str = "Paused";
    pub(crate) const ERROR: &str = "Error";
    pub(crate) const UNKNOWN: &str = "Unknown";
}

/// The status of the present counts. The job is over once it has the time of its end.
pub(super) fn status(job: &EphemeralJob, counts: &Counts<'_>, now: Timestamp) -> EphemeralJobStatus {
    let mut status = job.status.clone().unwrap_or_default();
    status.start_time.get_or_insert_with(|| whole_seconds(now));
    status.matched = counts.matched;
    status.running = counts.running;
    status.succeeded = counts.succeeded;
    status.failed = counts.failed;
    status.waiting = counts.waiting;
    condition(&mut status, now, "Initialized", "Initialized", "");
    phase(job, counts, &mut status, now);
    let ObjectKey { namespace, name } = ObjectKey::of(job);
    if job.spec.paused == Some(true) {
        phase::PAUSED.clone_into(&mut status.phase);
    }
    if status.failed > 0 {
        let message = format!("EphemeralJob {namespace}/{name} failed to create ephemeral container");
        condition(&mut status, now, "JobFailed", "CreateFailed", &message);
    }
    let waits = matches!(&*status.phase, phase::WAITING | phase::UNKNOWN | phase::RUNNING);
    if waits && deadline(job, &status).is_some_and(|deadline| deadline <= now) {
        phase::FAILED.clone_into(&mut status.phase);
        status.completion_time = Some(whole_seconds(now));
        let message = format!("EphemeralJob {namespace}/{name} was active longer than specified deadline");
        condition(&mut status, now, "JobFailed", "DeadlineExceeded", &message);
    }
    status
}

/// The phase by the counts alone.
fn phase(job: &EphemeralJob, counts: &Counts<'_>, status: &mut EphemeralJobStatus, now: Timestamp) {
    let wanted = job.spec.replicas.unwrap_or(counts.matched);
    let phase = if counts.matched == 0 {
        condition(status, now, "MatchedEmpty", "MatchEmpty", "job match no pods");
        phase::WAITING
    } else if counts.succeeded == wanted && counts.succeeded > 0 {
        status.completion_time = Some(whole_seconds(now));
        condition(
            status,
            now,
            "JobSucceeded",
            "JobSucceeded",
            "job success to run all tasks",
        );
        phase::SUCCEEDED
    } else if counts.running > 0 {
        phase::RUNNING
    } else if counts.failed == wanted {
        status.completion_time = Some(whole_seconds(now));
        condition(status, now, "JobFailed", "JobFailed", "");
        phase::FAILED
    } else if counts.waiting == wanted {
        phase::WAITING
    } else {
        phase::UNKNOWN
    };
    phase.clone_into(&mut status.phase);
}

/// The status of a job without containers, which can do nothing.
pub(super) fn of_nothing(job: &EphemeralJob, counts: &Counts<'_>, now: Timestamp) -> EphemeralJobStatus {
    let mut status = status(job, counts, now);
    phase::ERROR.clone_into(&mut status.phase);
    condition(
        &mut status,
        now,
        "JobError",
        "JobError",
        "job spec invalid fields.",
    );
    status
}

/// When a job has been active for as long as it may.
pub(super) fn deadline(job: &EphemeralJob, status: &EphemeralJobStatus) -> Option<Timestamp> {
    let seconds = job.spec.active_deadline_seconds?;
    let limit = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let start = status.start_time.as_ref()?;
    Some(start.0.saturating_add(limit).unwrap_or(Timestamp::MAX))
}

fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// Sets a condition. One that says the same stays as it is.
fn condition(status: &mut EphemeralJobStatus, now: Timestamp, kind: &str, reason: &str, message: &str) {
    let now = whole_seconds(now);
    let message = (!message.is_empty()).then(|| message.to_owned());
    let new = JobCondition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        last_probe_time: Some(now.clone()),
        last_transition_time: Some(now),
        reason: Some(reason.to_owned()),
        message,
    };
    match status.conditions.iter_mut().find(|known| known.kind == kind) {
        Some(known) if (&known.reason, &known.message) == (&new.reason, &new.message) => {}
        Some(known) => *known = new,
        None => status.conditions.push(new),
    }
}
