//! One pass of the controller over a job.

use std::time::Duration;

use client_kit::EventType;

use super::outcome::failure_event;
use super::policy::{self, OnFailedPod, phase};
use super::verdict::{self, Verdict};
use super::view::View;
use crate::api::v1beta1::{BroadcastJob, BroadcastJobStatus};
use crate::pods::{CachedPod, PodAction, PodRef};
use crate::workloads::broadcastjob::observe::Observed;

/// The rest that a job which ends has beyond its time to live: its end is written in whole seconds.
const REST_AFTER_END: Duration = Duration::from_secs(1);

/// The next step for a job.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::broadcastjob) enum Plan {
    /// Nothing, for so long at the most.
    Rest(Option<Duration>),
    /// Delete the job: it has been over for as long as it may.
    Remove,
    /// Work on its pods.
    Work(Box<Work>),
}

/// The work of a pass over a job that is not over.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::broadcastjob) struct Work {
    /// The events that come before everything else.
    pub(in crate::workloads::broadcastjob) events: Vec<PodAction>,
    /// The pods to delete, all at once.
    pub(in crate::workloads::broadcastjob) delete: Vec<PodRef>,
    /// The nodes that get a pod.
    pub(in crate::workloads::broadcastjob) create: Vec<String>,
    /// The status, before any of this is done.
    pub(in crate::workloads::broadcastjob) status: BroadcastJobStatus,
    /// Whether the job is over with this pass.
    pub(in crate::workloads::broadcastjob) verdict: Verdict,
    /// The failure of the pass, once the status is written.
    pub(in crate::workloads::broadcastjob) failure: Option<String>,
    /// When to look again at the latest.
    pub(in crate::workloads::broadcastjob) requeue: Option<Duration>,
}

/// Plans a pass.
pub(in crate::workloads::broadcastjob) fn plan(observed: &Observed) -> Plan {
    let job = &observed.job;
    if policy::is_over(job) {
        return over(observed);
    }
    let view = View::of(observed);
    let mut work = Work {
        events: view.doubles.iter().map(double).collect(),
        delete: Vec::new(),
        create: Vec::new(),
        status: counted(observed, &view),
        verdict: Verdict::Open,
        failure: None,
        requeue: None,
    };
    if work.status.phase != phase::FAILED && !is_paused(job, &mut work) {
        go_on(observed, &view, &mut work);
    }
    Plan::Work(Box::new(work))
}

/// The next step for a job that is over.
fn over(observed: &Observed) -> Plan {
    let status = observed.job.status.as_ref();
    let end = status.and_then(|status| status.completion_time.as_ref());
    let (Some(end), Some(rest)) = (end, policy::time_to_live(&observed.job)) else {
        return Plan::Rest(None);
    };
    let due = end.0.saturating_add(rest).unwrap_or(jiff::Timestamp::MAX);
    match due <= observed.now {
        true => Plan::Remove,
        false => Plan::Rest(Some(policy::until(due, observed.now))),
    }
}

fn double((pod, node): &(&str, &str)) -> PodAction {
    PodAction::Event {
        kind: EventType::Warning,
        reason: "DuplicatePodCreatedOnSameNode",
        message: format!("Duplicated pod {pod} found on same node {node}"),
    }
}

/// The status with the present counts.
fn counted(observed: &Observed, view: &View<'_>) -> BroadcastJobStatus {
    let mut status = observed.job.status.clone().unwrap_or_default();
    status
        .start_time
        .get_or_insert_with(|| policy::whole_seconds(observed.now));
    if status.phase.is_empty() {
        phase::RUNNING.clone_into(&mut status.phase);
    }
    status.active = view.active_count();
    status.succeeded = view.succeeded;
    status.failed = view.failed;
    status.desired = view.desired;
    status
}

/// Whether the job is paused by its spec. One that was paused, and is not, goes on.
fn is_paused(job: &BroadcastJob, work: &mut Work) -> bool {
    let status = &mut work.status;
    let is_paused = job.spec.paused == Some(true);
    match (is_paused, status.phase.as_str()) {
        (true, phase::RUNNING | phase::PAUSED) => {
            phase::PAUSED.clone_into(&mut status.phase);
            true
        }
        (false, phase::PAUSED) => {
            phase::RUNNING.clone_into(&mut status.phase);
            work.events.push(PodAction::Event {
                kind: EventType::Normal,
                reason: "Continue",
                message: "continue to process job".to_owned(),
            });
            false
        }
        _ => false,
    }
}

/// The rest of the pass over a job that is not paused.
fn go_on(observed: &Observed, view: &View<'_>, work: &mut Work) {
    let job = &observed.job;
    if view.failed > 0 && policy::on_failed_pod(job) == OnFailedPod::Pause {
        phase::PAUSED.clone_into(&mut work.status.phase);
        work.events.push(PodAction::Event {
            kind: EventType::Warning,
            reason: "Paused",
            message: "job is paused, due to failed pod".to_owned(),
        });
        return;
    }
    if let Some(verdict) = verdict::failure(job, &work.status, view, observed.now) {
        if let (Verdict::Failed { reason, message }, true) = (&verdict, view.failed > 0)
            && policy::on_failed_pod(job) == OnFailedPod::FailFast
        {
            // OpenKruise tells of the failed pod before it deletes the others, and again after it.
            work.events.push(failure_event(reason, message, &work.status));
        }
        work.delete = refs(&view.active);
        work.verdict = verdict;
        work.requeue = policy::time_to_live(job).map(|rest| rest + REST_AFTER_END);
        return;
    }
    work.delete = refs(&view.misplaced);
    if job.metadata.deletion_timestamp.is_none() && !view.empty.is_empty() {
        create(job, view, work);
    }
    work.verdict = verdict::success(job, view);
    work.requeue = match work.verdict {
        Verdict::Open => policy::deadline(job, &work.status).map(|at| policy::until(at, observed.now)),
        _ => policy::time_to_live(job).map(|rest| rest + REST_AFTER_END),
    };
}

/// Chooses the nodes that get a pod, as many as the parallelism allows.
fn create(job: &BroadcastJob, view: &View<'_>, work: &mut Work) {
    let parallelism = match policy::parallelism(job, view.desired) {
        Ok(parallelism) => parallelism,
        Err(error) => {
            work.failure = Some(error.to_string());
            return;
        }
    };
    let active = view.staying_count();
    if active > parallelism {
        work.events.push(PodAction::Event {
            kind: EventType::Warning,
            reason: "TooManyActivePods",
            message: "Number of active pods exceed parallelism limit".to_owned(),
        });
        return;
    }
    let room = usize::try_from(parallelism.saturating_sub(active)).unwrap_or(0);
    let nodes = view.empty.iter().take(room);
    work.create = nodes.map(|node| (*node).to_owned()).collect();
}

fn refs(pods: &[&std::sync::Arc<CachedPod>]) -> Vec<PodRef> {
    pods.iter().map(|pod| PodRef::of(pod)).collect()
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
