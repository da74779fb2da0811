//! One pass of the controller over a job.

use std::time::Duration;

use jiff::Timestamp;

use super::counts::{self, Counts};
use super::status::{self, phase};
use crate::api::v1alpha1::{EphemeralJob, EphemeralJobStatus};
use crate::pods::PodRef;
use crate::workloads::ephemeraljob::FINALIZER;
use crate::workloads::ephemeraljob::observe::Observed;

/// For how long a job stays once it is over, unless it says otherwise.
const DEFAULT_TTL_S: i32 = 1800;

/// The next step for a job.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::ephemeraljob) enum Plan {
    /// Nothing, for so long at the most.
    Rest(Option<Duration>),
    /// Let the job go: its containers stay in the pods.
    LetGo,
    /// Hold the job, so that it is let go later.
    Hold,
    /// Delete the job: it has been over for as long as it may.
    Remove,
    /// Write the status, and give pods the containers.
    Work(Box<Work>),
}

/// The work of a pass over a job that is not over.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::ephemeraljob) struct Work {
    /// The pods that get the containers.
    pub(in crate::workloads::ephemeraljob) inject: Vec<PodRef>,
    /// The status to write afterwards.
    pub(in crate::workloads::ephemeraljob) status: EphemeralJobStatus,
    /// When to look again at the latest.
    pub(in crate::workloads::ephemeraljob) requeue: Option<Duration>,
}

/// Plans a pass.
pub(in crate::workloads::ephemeraljob) fn plan(observed: &Observed) -> Plan {
    let job = &observed.job;
    let is_held = job
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == FINALIZER);
    match (job.metadata.deletion_timestamp.is_some(), is_held) {
        (true, true) => return Plan::LetGo,
        (true, false) => return Plan::Rest(None),
        (false, false) => return Plan::Hold,
        (false, true) => {}
    }
    let end = job
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    if let Some(end) = end {
        return over(job, end.0, observed.now);
    }
    let counts = Counts::of(observed);
    if counts::names(job).is_empty() {
        return Plan::Work(Box::new(Work {
            inject: Vec::new(),
            status: status::of_nothing(job, &counts, observed.now),
            requeue: None,
        }));
    }
    let status = status::status(job, &counts, observed.now);
    let requeue = match &status.completion_time {
        Some(end) => until_removal(job, end.0, observed.now),
        None => status::deadline(job, &status).map(|at| until(at, observed.now)),
    };
    let is_open = status.completion_time.is_none() && status.phase != phase::PAUSED;
    Plan::Work(Box::new(Work {
        inject: if is_open { inject(job, &counts) } else { Vec::new() },
        status,
        requeue: requeue.filter(|wait| !wait.is_zero()),
    }))
}

/// The next step for a job that is over.
fn over(job: &EphemeralJob, end: Timestamp, now: Timestamp) -> Plan {
    match until_removal(job, end, now) {
        Some(wait) if !wait.is_zero() => Plan::Rest(Some(wait)),
        _ => Plan::Remove,
    }
}

fn until_removal(job: &EphemeralJob, end: Timestamp, now: Timestamp) -> Option<Duration> {
    let seconds = job.spec.ttl_seconds_after_finished.unwrap_or(DEFAULT_TTL_S);
    let stay = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some(until(end.saturating_add(stay).unwrap_or(Timestamp::MAX), now))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// The pods that get the containers now. As in OpenKruise those that wait to start do not count.
fn inject(job: &EphemeralJob, counts: &Counts<'_>) -> Vec<PodRef> {
    let without = i32::try_from(counts.without.len()).unwrap_or(i32::MAX);
    let parallelism = job.spec.parallelism.unwrap_or(1).min(without);
    let room = usize::try_from(parallelism.saturating_sub(counts.running)).unwrap_or(0);
    counts
        .without
        .iter()
        .take(room)
        .map(|pod| PodRef::of(pod))
        .collect()
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
