//! The status and the events that follow from the work of a pass.

use client_kit::EventType;
use jiff::Timestamp;

use super::pass::Work;
use super::policy::{condition, phase, whole_seconds};
use super::verdict::Verdict;
use crate::api::v1beta1::{BroadcastJob, BroadcastJobStatus, JobCondition};
use crate::kit::ObjectKey;
use crate::pods::PodAction;

/// The part of a pass that was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::workloads::broadcastjob) struct Done {
    /// How many pods were deleted.
    pub(in crate::workloads::broadcastjob) deleted: usize,
    /// How many pods the server was asked to make, whatever it answered.
    pub(in crate::workloads::broadcastjob) tried: usize,
}

/// The outcome of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::broadcastjob) struct Outcome {
    /// The status to write.
    pub(in crate::workloads::broadcastjob) status: BroadcastJobStatus,
    /// The event about the end of the job.
    pub(in crate::workloads::broadcastjob) event: Option<PodAction>,
}

impl Work {
    /// The outcome once so much of it was done.
    pub(in crate::workloads::broadcastjob) fn outcome(
        &self,
        job: &BroadcastJob,
        done: Done,
        now: Timestamp,
    ) -> Outcome {
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let mut status = self.status.clone();
        // As in OpenKruise a deleted pod was an active one and counts as failed until the next pass.
        status.failed += count(done.deleted);
        status.active += count(done.tried) - count(done.deleted);
        let event = match &self.verdict {
            Verdict::Open => None,
            Verdict::Complete => {
                let sums = format!(
                    "{} pods succeeded, {} pods failed",
                    status.succeeded, status.failed
                );
                end(
                    &mut status,
                    phase::COMPLETED,
                    condition::COMPLETE,
                    &format!("Job completed, {sums}"),
                    now,
                );
                let ObjectKey { namespace, name } = ObjectKey::of(job);
                Some(PodAction::Event {
                    kind: EventType::Normal,
                    reason: "JobComplete",
                    message: format!("Job {namespace}/{name} is completed, {sums}"),
                })
            }
            Verdict::Failed { reason, message } => {
                end(&mut status, phase::FAILED, condition::FAILED, message, now);
                Some(failure_event(reason, message, &status))
            }
        };
        Outcome { status, event }
    }
}

/// The event about a job that has failed.
pub(super) fn failure_event(reason: &'static str, message: &str, status: &BroadcastJobStatus) -> PodAction {
    let BroadcastJobStatus {
        succeeded, failed, ..
    } = status;
    PodAction::Event {
        kind: EventType::Warning,
        reason,
        message: format!("{message}: {succeeded} pods succeeded, {failed} pods failed"),
    }
}

/// Ends a job.
fn end(status: &mut BroadcastJobStatus, phase: &str, kind: &str, message: &str, now: Timestamp) {
    let now = whole_seconds(now);
    phase.clone_into(&mut status.phase);
    status.completion_time = Some(now.clone());
    status.conditions.push(JobCondition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        last_probe_time: Some(now.clone()),
        last_transition_time: Some(now),
        reason: Some(kind.to_owned()),
        message: Some(message.to_owned()),
    });
}
