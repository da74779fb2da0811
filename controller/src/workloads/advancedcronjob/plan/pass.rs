//! One pass of the controller over an AdvancedCronJob.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::{build, due, history};
use crate::api::v1beta1::{AdvancedCronJob, AdvancedCronJobStatus};
use crate::workloads::advancedcronjob::jobs::{Child, JobKind, State};
use crate::workloads::advancedcronjob::observe::Observed;

/// The work of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::advancedcronjob) struct Plan {
    /// The status, which is written first.
    pub(in crate::workloads::advancedcronjob) status: AdvancedCronJobStatus,
    /// Jobs that are over and too many. A failure to delete one does not matter.
    pub(in crate::workloads::advancedcronjob) history: Vec<Child>,
    /// Active jobs that are deleted before one is made. A failure ends the pass.
    pub(in crate::workloads::advancedcronjob) replaced: Vec<Child>,
    /// The job to make, and its kind.
    pub(in crate::workloads::advancedcronjob) create: Option<(JobKind, Value)>,
    /// When to look again at the latest.
    pub(in crate::workloads::advancedcronjob) requeue: Option<Duration>,
}

/// Plans a pass.
pub(in crate::workloads::advancedcronjob) fn plan(observed: &Observed) -> Plan {
    let cron = &observed.cron;
    let status = status(observed);
    let mut plan = Plan {
        history: history::beyond(cron, &observed.children)
            .into_iter()
            .cloned()
            .collect(),
        replaced: Vec::new(),
        create: None,
        requeue: None,
        status,
    };
    let goes = cron.metadata.deletion_timestamp.is_some();
    if goes || cron.spec.paused == Some(true) {
        return plan;
    }
    let Some(schedule) = due::schedule(cron) else {
        return plan;
    };
    let last = plan.status.last_schedule_time.as_ref().map(|time| time.0);
    let due = due::due(cron, &schedule, last, observed.now);
    plan.requeue = due.wait;
    if let Some(missed) = due.missed {
        run(observed, missed, &mut plan);
    }
    plan
}

/// Makes the job for a time, as far as those that are active allow it.
fn run(observed: &Observed, missed: Timestamp, plan: &mut Plan) {
    let cron = &observed.cron;
    let active = observed
        .children
        .iter()
        .filter(|child| child.state == State::Active);
    let active: Vec<Child> = active.cloned().collect();
    match policy(cron) {
        "Forbid" if !active.is_empty() => return,
        "Replace" => plan.replaced = active,
        _ => {}
    }
    plan.create = Some((JobKind::of(cron), build::job(cron, missed)));
}

fn policy(cron: &AdvancedCronJob) -> &str {
    cron.spec.concurrency_policy.as_deref().unwrap_or_default()
}

/// The status. The time of the last job stays when the job does not: OpenKruise forgets it with the last of its jobs, and makes that
/// one again.
fn status(observed: &Observed) -> AdvancedCronJobStatus {
    let old = observed.cron.status.as_ref();
    let known = old.and_then(|status| status.last_schedule_time.as_ref());
    let scheduled = observed.children.iter().filter_map(|child| child.scheduled);
    let last = scheduled.chain(known.map(|time| time.0)).max();
    let active = observed
        .children
        .iter()
        .filter(|child| child.state == State::Active);
    AdvancedCronJobStatus {
        kind: Some(JobKind::of(&observed.cron).name().to_owned()),
        active: active.map(|child| child.reference.clone()).collect(),
        last_schedule_time: last.map(Time),
    }
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
