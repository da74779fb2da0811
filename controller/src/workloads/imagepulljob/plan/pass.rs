//! The status of a job, and the nodes that it asks next.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Observed;
use super::count::{Count, count};
use crate::api::v1beta1::{ImagePullJob, ImagePullJobStatus};

/// On how many nodes an image is pulled at a time unless the job says so.
const PARALLELISM: i32 = 1;
/// The shortest time until a deadline is looked at.
const NEXT_MIN: Duration = Duration::from_secs(1);

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workloads::imagepulljob) enum Phase {
    /// It runs.
    Running,
    /// It is being deleted.
    Going,
    /// It is over, and stays.
    Over,
    /// It is over, and is deleted after this time.
    OverFor(Duration),
}

/// Where a job stands.
pub(in crate::workloads::imagepulljob) fn phase(job: &ImagePullJob, now: Timestamp) -> Phase {
    if job.metadata.deletion_timestamp.is_some() {
        return Phase::Going;
    }
    let end = job
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    let Some(end) = end else { return Phase::Running };
    let Some(ttl) = job.spec.template.completion_policy.ttl_seconds_after_finished else {
        return Phase::Over;
    };
    Phase::OverFor(left(end.0, i64::from(ttl), now))
}

/// The rest of so many seconds.
fn left(since: Timestamp, seconds: i64, now: Timestamp) -> Duration {
    let left = SignedDuration::from_secs(seconds).saturating_sub(now.duration_since(since));
    Duration::try_from(left).unwrap_or_default()
}

/// The work of one pass over a job that runs.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::imagepulljob) struct Work {
    /// The nodes to ask.
    pub(in crate::workloads::imagepulljob) ask: Vec<String>,
    /// The status after that.
    pub(in crate::workloads::imagepulljob) status: ImagePullJobStatus,
    /// When the next pass is due, where the status has not changed.
    pub(in crate::workloads::imagepulljob) next: Option<Duration>,
}

/// The work of one pass.
pub(in crate::workloads::imagepulljob) fn work(observed: &Observed) -> Work {
    let (job, now) = (&observed.job, observed.now);
    let count = count(observed);
    let known = job.status.as_ref().and_then(|status| status.start_time.clone());
    let start = known.unwrap_or(Time(now));
    let mut status = ImagePullJobStatus {
        start_time: Some(start.clone()),
        desired: number(observed.nodes.len()),
        active: number(count.pulling.len()),
        succeeded: number(count.succeeded.len()),
        failed: number(count.failed.len()),
        failed_nodes: count.failed.clone(),
        ..ImagePullJobStatus::default()
    };
    let policy = &job.spec.template.completion_policy;
    let ends = policy.kind.as_deref() != Some("Never");
    let is_done = status.desired == status.succeeded + status.failed;
    let deadline = policy.active_deadline_seconds.filter(|_| ends);
    let left = deadline.map(|deadline| left(start.0, deadline, now));
    if !is_done && left == Some(Duration::ZERO) {
        return exceeded(status, count, now);
    }
    let ask = count.unasked.iter().take(room(job, status.active));
    let ask = ask.cloned().collect();
    status.completion_time = (is_done && ends).then_some(Time(now));
    status.message = message(&status);
    let next = left.map(|left| left.max(NEXT_MIN));
    Work { ask, status, next }
}

/// A job whose time is up: the nodes that pull, and those that were not asked, have failed.
fn exceeded(mut status: ImagePullJobStatus, count: Count, now: Timestamp) -> Work {
    status.completion_time = Some(Time(now));
    status.failed_nodes = [count.failed, count.pulling, count.unasked].concat();
    status.failed = number(status.failed_nodes.len());
    status.active = 0;
    "job exceeds activeDeadlineSeconds".clone_into(&mut status.message);
    Work {
        ask: Vec::new(),
        status,
        next: None,
    }
}

fn message(status: &ImagePullJobStatus) -> String {
    if status.completion_time.is_some() {
        return "job has completed".to_owned();
    }
    if status.desired == 0 {
        return "job is running, no progress".to_owned();
    }
    let done = f64::from(status.succeeded + status.failed);
    format!(
        "job is running, progress {:.1}%",
        100.0 * done / f64::from(status.desired)
    )
}

/// How many more nodes may pull. A text is read as a number, and counts as none where it is not.
fn room(job: &ImagePullJob, active: i32) -> usize {
    let parallelism = match &job.spec.template.parallelism {
        None => PARALLELISM,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => text.parse().unwrap_or_default(),
    };
    usize::try_from(parallelism.saturating_sub(active)).unwrap_or_default()
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
