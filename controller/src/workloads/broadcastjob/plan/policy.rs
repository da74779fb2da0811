//! The policies of a job.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1beta1::{BroadcastJob, BroadcastJobStatus};
use crate::kit::numbers::{NumberError, Round, scaled};

/// The phases of a job.
pub(super) mod phase {
    /// Pods run, or may.
    pub(crate) const RUNNING: &str = "running";
    /// No pods are made.
    pub(crate) const PAUSED: &str = "paused";
    /// The job is over, and all is well.
    pub(crate) const COMPLETED: &str = "completed";
    /// The job is over.
    pub(crate) const FAILED: &str = "failed";
}

/// The conditions of a job that is over.
pub(super) mod condition {
    /// Each node has had its pod.
    pub(crate) const COMPLETE: &str = "Complete";
    /// The job has failed.
    pub(crate) const FAILED: &str = "Failed";
}

/// The effect of a failed pod on its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFailedPod {
    /// The job fails.
    FailFast,
    /// Nothing.
    Continue,
    /// No further pods are made.
    Pause,
}

/// The effect of a failed pod on `job`. An unknown word means nothing.
pub(super) fn on_failed_pod(job: &BroadcastJob) -> OnFailedPod {
    let policy = job.spec.failure_policy.as_ref();
    match policy.and_then(|policy| policy.kind.as_deref()) {
        Some("FailFast") => OnFailedPod::FailFast,
        Some("Pause") => OnFailedPod::Pause,
        _ => OnFailedPod::Continue,
    }
}

/// How often the containers of a pod may be started anew.
pub(super) fn restart_limit(job: &BroadcastJob) -> i32 {
    let policy = job.spec.failure_policy.as_ref();
    policy.and_then(|policy| policy.restart_limit).unwrap_or(0)
}

/// Whether a job ends by itself.
pub(super) fn ends(job: &BroadcastJob) -> bool {
    let policy = job.spec.completion_policy.as_ref();
    policy.and_then(|policy| policy.kind.as_deref()) != Some("Never")
}

/// Whether a job is over: it has a condition that says so, and is one that ends.
pub(super) fn is_over(job: &BroadcastJob) -> bool {
    let conditions = job.status.iter().flat_map(|status| &status.conditions);
    let mut last = conditions.filter(|condition| condition.status == "True");
    ends(job) && last.any(|it| matches!(it.kind.as_str(), condition::COMPLETE | condition::FAILED))
}

/// For how long a job stays once it is over; for good if there is none.
pub(super) fn time_to_live(job: &BroadcastJob) -> Option<Duration> {
    let policy = job.spec.completion_policy.as_ref()?;
    Some(seconds(policy.ttl_seconds_after_finished?.into()))
}

/// When a job that ends has been active for as long as it may.
pub(super) fn deadline(job: &BroadcastJob, status: &BroadcastJobStatus) -> Option<Timestamp> {
    let policy = job.spec.completion_policy.as_ref().filter(|_| ends(job))?;
    let limit = seconds(policy.active_deadline_seconds?);
    let start = status.start_time.as_ref()?;
    Some(start.0.saturating_add(limit).unwrap_or(Timestamp::MAX))
}

/// How many pods may be active, of so many nodes.
///
/// # Errors
/// A text that is no percentage.
pub(super) fn parallelism(job: &BroadcastJob, desired: i32) -> Result<i32, NumberError> {
    let value = job.spec.parallelism.as_ref();
    value.map_or(Ok(i32::MAX), |value| scaled(value, desired, Round::Up))
}

/// How long it is until `at`; nothing if that has passed.
pub(super) fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// The time of a status, which has whole seconds.
pub(super) fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// A number of seconds, at least none.
fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(0))
}
