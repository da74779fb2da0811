//! The status of a job, as a pass writes it.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at};
use shared_json::{Value, json};

use super::job_plan::{End, Plan, is_indexed};
use crate::runtime::{condition, is_ready, list, text};

fn put_condition(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    stamp: &str,
) {
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastProbeTime": stamp, "lastTransitionTime": stamp,
    });
    match conditions.iter_mut().find(|known| known["type"] == kind) {
        Some(known) if known["status"] == status => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Whether a job is suspended or resumed by a pass.
pub(super) struct Suspension {
    /// The job's conditions with the one about this.
    pub conditions: Vec<Value>,
    /// When the job was started; none while it is suspended.
    pub start: Option<Value>,
    /// Reason and message of the event about a change.
    pub told: Option<(&'static str, &'static str)>,
}

impl Suspension {
    pub(super) fn of(job: &Value, plan: &Plan, stamp: &str) -> Self {
        let mut conditions = list(job, "status.conditions").to_vec();
        let is_known = condition(job, "Suspended").is_some_and(|known| text(known, "status") == "True");
        let is_wanted = at(job, "spec.suspend").and_then(Value::as_bool) == Some(true) && plan.end.is_none();
        let mut turn = |status: &str, reason: &'static str, message: &'static str| {
            put_condition(&mut conditions, "Suspended", status, reason, message, stamp);
        };
        let told = match (is_wanted, is_known) {
            (true, false) => {
                turn("True", "JobSuspended", "Job suspended");
                Some(("Suspended", "Job suspended"))
            }
            (false, true) => {
                turn("False", "JobResumed", "Job resumed");
                Some(("Resumed", "Job resumed"))
            }
            _ => None,
        };
        let started = || at(job, "status.startTime").cloned();
        Self {
            conditions,
            start: (!is_wanted).then(|| started().unwrap_or_else(|| Value::from(stamp))),
            told,
        }
    }
}

/// A pass over a job that has made and deleted its pods.
pub(super) struct Pass<'a> {
    pub job: &'a Value,
    pub pods: &'a [Arc<Value>],
    pub plan: &'a Plan,
    pub stamp: &'a str,
    /// How many pods it has deleted and created.
    pub deleted: i64,
    pub created: i64,
}

impl<'a> Pass<'a> {
    fn active(&self) -> i64 {
        if self.plan.waits {
            0
        } else {
            self.plan.active - self.deleted + self.created
        }
    }

    /// How many pods are ready, without those that were deleted.
    fn ready(&self) -> i64 {
        let is_ready_one = |name: &&String| self.pods.iter().any(|pod| pod.name() == **name && is_ready(pod));
        let gone = usize::try_from(self.deleted).unwrap_or_default();
        let gone = self.plan.delete.iter().take(gone).filter(is_ready_one);
        self.plan.ready - gone.map(|_| 1).sum::<i64>()
    }

    /// The status without counts of ended pods and without conditions.
    pub(super) fn status(&self, start: Option<&Value>) -> Value {
        let plan = self.plan;
        let mut status =
            json!({"terminating": plan.terminating + self.deleted, "uncountedTerminatedPods": {}});
        let times = [
            ("startTime", start),
            ("completionTime", at(self.job, "status.completionTime")),
        ];
        for (field, value) in times {
            if let Some(value) = value {
                status[field] = value.clone();
            }
        }
        status["ready"] = Value::from(self.ready());
        if let Some(indexes) = plan.indexes.as_ref().filter(|_| is_indexed(self.job)) {
            status["completedIndexes"] = Value::from(indexes.clone());
        }
        if let Some(indexes) = &plan.failed_indexes {
            status["failedIndexes"] = Value::from(indexes.clone());
        }
        status
    }

    /// The conditions with the one that says how the job will end.
    pub(super) fn aimed(&self, mut conditions: Vec<Value>) -> Vec<Value> {
        let (kind, reason, message) = match &self.plan.end {
            Some(End::Complete { reason, message }) => ("SuccessCriteriaMet", reason, message),
            Some(End::Failed { reason, message }) => ("FailureTarget", reason, message),
            None => return conditions,
        };
        put_condition(&mut conditions, kind, "True", reason, message, self.stamp);
        conditions
    }

    /// The pods that this pass counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = &'a Arc<Value>> {
        let names = &self.plan.count;
        self.pods
            .iter()
            .filter(|pod| names.iter().any(|name| name == pod.name()))
    }

    /// The status that announces the pods that will be counted.
    pub(super) fn announced(&self, status: &Value, conditions: &[Value]) -> Value {
        let mut status = status.clone();
        let known = |path: &str| at(self.job, path).and_then(Value::as_i64).unwrap_or(0);
        self.count(&mut status, known("status.succeeded"), known("status.failed"));
        for (word, has_succeeded) in [("succeeded", true), ("failed", false)] {
            let uids: Vec<&str> = self
                .counted()
                .filter(|pod| (text(pod, "status.phase") == "Succeeded") == has_succeeded)
                .map(|pod| pod.uid())
                .collect();
            if !uids.is_empty() {
                status["uncountedTerminatedPods"][word] = json!(uids);
            }
        }
        if !conditions.is_empty() {
            status["conditions"] = json!(conditions);
        }
        status
    }

    /// The status in which they are counted, and the end of the job if nothing of it runs any more.
    pub(super) fn counted_status(
        &self,
        mut status: Value,
        mut conditions: Vec<Value>,
    ) -> (Value, Option<&'a End>) {
        self.count(&mut status, self.plan.succeeded, self.plan.failed);
        let is_quiet = self.active() == 0 && self.plan.terminating + self.deleted == 0;
        let ended = self.plan.end.as_ref().filter(|_| is_quiet);
        match ended {
            Some(End::Complete { reason, message }) => {
                put_condition(&mut conditions, "Complete", "True", reason, message, self.stamp);
                status["completionTime"] = Value::from(self.stamp);
            }
            Some(End::Failed { reason, message }) => {
                put_condition(&mut conditions, "Failed", "True", reason, message, self.stamp);
            }
            None => {}
        }
        if !conditions.is_empty() {
            status["conditions"] = json!(conditions);
        }
        (status, ended)
    }

    fn count(&self, status: &mut Value, succeeded: i64, failed: i64) {
        let counts = [
            ("active", self.active()),
            ("succeeded", succeeded),
            ("failed", failed),
        ];
        for (field, count) in counts {
            if count > 0 {
                status[field] = Value::from(count);
            }
        }
    }
}

/// The status of a job that is about to go: its pods are not held any more, so that none of them is counted as it ends.
pub(super) fn winding_up(job: &Value, plan: &Plan) -> Value {
    let mut status = job.get("status").cloned().unwrap_or_else(|| json!({}));
    for (field, count) in [("ready", plan.ready), ("terminating", plan.terminating)] {
        status[field] = Value::from(count);
    }
    if plan.active > 0 {
        status["active"] = Value::from(plan.active);
    } else if let Some(status) = status.as_object_mut() {
        status.remove("active");
    }
    status
}
