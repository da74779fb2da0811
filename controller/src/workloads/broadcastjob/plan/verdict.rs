//! Whether a job is over.

use jiff::Timestamp;

use super::policy::{self, OnFailedPod};
use super::view::View;
use crate::api::v1beta1::{BroadcastJob, BroadcastJobStatus};
use crate::kit::ObjectKey;

/// Whether a job is over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workloads::broadcastjob) enum Verdict {
    /// It goes on.
    Open,
    /// Each node has had its pod.
    Complete,
    /// It has failed.
    Failed {
        /// The reason of the event.
        reason: &'static str,
        /// The message of the condition.
        message: String,
    },
}

/// The verdict over a job that has a failed pod, by its policy; over any job by its deadline.
pub(super) fn failure(
    job: &BroadcastJob,
    status: &BroadcastJobStatus,
    view: &View<'_>,
    now: Timestamp,
) -> Option<Verdict> {
    if view.failed > 0 && policy::on_failed_pod(job) == OnFailedPod::FailFast {
        return Some(Verdict::Failed {
            reason: "failed pod is found",
            message: "failure policy is FailurePolicyTypeFailFast and failed pod is found".to_owned(),
        });
    }
    let is_late = policy::deadline(job, status).is_some_and(|deadline| deadline <= now);
    is_late.then(|| {
        let ObjectKey { namespace, name } = ObjectKey::of(job);
        Verdict::Failed {
            reason: "DeadlineExceeded",
            message: format!("Job {namespace}/{name} was active longer than specified deadline"),
        }
    })
}

/// The verdict over a job that has not failed.
pub(super) fn success(job: &BroadcastJob, view: &View<'_>) -> Verdict {
    match policy::ends(job) && view.desired > 0 && view.all_ended {
        true => Verdict::Complete,
        false => Verdict::Open,
    }
}
