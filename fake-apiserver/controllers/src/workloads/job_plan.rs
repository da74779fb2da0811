//! The next actions of a job, and its status: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::Value;

use super::job_indexes::{index_of, indexes, ranges};
use super::job_policies;
use super::pods::sort_for_deletion;
use crate::runtime::{condition, is_true, list, number, text, time, until};
use crate::runtime::{is_over, is_ready};

pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// How often pods of the index have failed before this one, where indexes have limits of their own.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often they have failed without that being counted.
pub(super) const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// How long the controller waits by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// For further changes of pods, before it looks at a job.
    pub batch: Duration,
    /// Before the first retry after a failure, and the longest that any waits.
    pub retry: Duration,
    pub retry_max: Duration,
}

impl Pace {
    /// The real one's.
    pub(super) const REAL: Self = Self {
        batch: Duration::from_secs(1),
        retry: Duration::from_secs(10),
        retry_max: Duration::from_secs(600),
    };
    /// As quick as the machine; retries still wait longer each time.
    pub(super) const QUICK: Self = Self {
        batch: Duration::from_millis(2),
        retry: Duration::from_millis(10),
        retry_max: Duration::from_millis(600),
    };
}

/// A job and its state.
pub(super) struct View<'a> {
    pub job: &'a Value,
    pub pods: &'a [Arc<Value>],
    pub now: Timestamp,
    /// The failures that earlier passes have seen.
    pub known: Failures,
    pub pace: Pace,
}

/// Failures of a job since its last success, as they were seen: the next pod waits by them. They are remembered, for pods that
/// were counted may be gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub in_a_row: i64,
    pub last: Option<Timestamp>,
}

/// How a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Complete { reason: String, message: String },
    Failed { reason: String, message: String },
}

/// The pods of a job, counted.
struct Tally<'a> {
    active: Vec<&'a Arc<Value>>,
    /// The indexes that have succeeded, and those that are not tried again.
    done: BTreeSet<i64>,
    given_up: BTreeSet<i64>,
    /// Why the pod failure policy ends the job, if it does.
    broken: Option<String>,
}

/// The actions to take now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Pods to make: the index of each, where they have one.
    pub create: Vec<Option<i64>>,
    /// Names of pods to delete.
    pub delete: Vec<String>,
    /// Names of ended pods that are counted now.
    pub count: Vec<String>,
    pub end: Option<End>,
    pub succeeded: i64,
    pub failed: i64,
    pub active: i64,
    pub ready: i64,
    pub terminating: i64,
    pub next: Option<Duration>,
    /// Whether new pods wait for their time. The job then counts as one without active pods.
    pub waits: bool,
    /// The failures to remember, once the ended pods are counted.
    pub row: Failures,
    /// Indexes that are done, as `0-3,5`.
    pub indexes: Option<String>,
    /// Indexes that have failed for good, where they have limits of their own.
    pub failed_indexes: Option<String>,
    /// How often pods of an index have failed, and how often that was not counted.
    pub failures: BTreeMap<i64, (i64, i64)>,
}

pub(super) fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

pub(super) fn is_indexed(job: &Value) -> bool {
    text(job, "spec.completionMode") == "Indexed"
}

/// Whether each index may fail so often, and not the job as a whole.
pub(super) fn is_limited_by_index(job: &Value) -> bool {
    is_indexed(job) && at(job, "spec.backoffLimitPerIndex").is_some_and(Value::is_number)
}

fn failures_of(pod: &Value, annotation: &str) -> i64 {
    let said = string_map(pod, "annotations").get(annotation);
    said.and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .filter(|count| (0..=i64::from(i32::MAX)).contains(count))
        .unwrap_or(0)
}

/// The latest of the times at which these containers ended, if all have.
fn last_end<'a>(mut statuses: impl Iterator<Item = &'a Value>) -> Option<Timestamp> {
    statuses
        .try_fold(None, |last: Option<Timestamp>, status| {
            time(status, "state.terminated.finishedAt").map(|at| last.max(Some(at)))
        })
        .flatten()
}

fn count(numbers: &BTreeSet<i64>) -> i64 {
    i64::try_from(numbers.len()).unwrap_or(i64::MAX)
}

/// When the pod ended: its last container, or as much as is known of it.
fn finished_at(pod: &Value) -> Option<Timestamp> {
    let sidecars: Vec<&str> = list(pod, "spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always")
        .map(|container| text(container, "name"))
        .collect();
    let of_sidecars = list(pod, "status.initContainerStatuses")
        .iter()
        .filter(|status| sidecars.contains(&text(status, "name")));
    let of_containers = last_end(list(pod, "status.containerStatuses").iter()).max(last_end(of_sidecars));
    let unready = || {
        condition(pod, "Ready")
            .filter(|ready| text(ready, "status") == "False")
            .and_then(|ready| time(ready, "lastTransitionTime"))
    };
    let asked_to_go = || {
        let at = time(pod, "metadata.deletionTimestamp")?;
        let grace = number(pod, "metadata.deletionGracePeriodSeconds", 0);
        at.checked_sub(Duration::from_secs(grace.unsigned_abs())).ok()
    };
    of_containers
        .or_else(unready)
        .or_else(asked_to_go)
        .or_else(|| time(pod, "metadata.creationTimestamp"))
}

impl View<'_> {
    fn uncounted(&self, pod: &Value) -> bool {
        pod.finalizers().contains(&FINALIZER)
    }

    /// Whether the pod counts as failed. One that is deleted does as well, unless only those that have ended are replaced; and
    /// even then if it will never end by itself, or goes because the job has failed.
    fn has_failed(&self, pod: &Value) -> bool {
        let phase = text(pod, "status.phase");
        let replaced_early = text(self.job, "spec.podReplacementPolicy") != "Failed";
        let counts = replaced_early || is_true(self.job, "FailureTarget") || is_gone_for_good(pod);
        phase == "Failed" || (pod.is_terminating() && counts && phase != "Succeeded")
    }

    /// How often containers were started again, in all pods that have not ended: those that go count, too.
    fn restarts(&self) -> i64 {
        let pods = self.pods.iter().filter(|pod| !is_over(pod));
        let statuses = pods.flat_map(|pod| {
            let own = list(pod, "status.containerStatuses").iter();
            own.chain(list(pod, "status.initContainerStatuses"))
        });
        statuses.map(|status| number(status, "restartCount", 0)).sum()
    }

    pub(super) fn plan(&self) -> Plan {
        let job = self.job;
        let mut plan = Plan {
            succeeded: number(job, "status.succeeded", 0),
            failed: number(job, "status.failed", 0),
            row: self.failures_in_a_row(),
            ..Plan::default()
        };
        let tally = self.tally(&mut plan);
        if is_finished(job) {
            return plan;
        }
        let deadline = at(job, "spec.activeDeadlineSeconds")
            .and_then(Value::as_u64)
            .map(Duration::from_secs);
        let over = time(job, "status.startTime")
            .zip(deadline)
            .and_then(|(begun, deadline)| begun.saturating_add(deadline).ok());
        plan.end = self.end(&plan, &tally, over);
        let all_active = || tally.active.iter().map(|pod| pod.name().to_owned()).collect();
        if plan.end.is_some() {
            plan.delete = all_active();
            return plan;
        }
        let mut closed = tally.done.clone();
        closed.extend(&tally.given_up);
        let replaced = self.replaced(&tally.active, &closed);
        for pod in replaced.values() {
            plan.count.retain(|name| name != pod.name());
            plan.failed -= i64::from(!self.is_ignored(pod));
        }
        if self.is_suspended() {
            plan.delete = all_active();
            return plan;
        }
        plan.next = over.and_then(|at| until(at, self.now));
        let ended = plan.succeeded + count(&tally.given_up);
        self.fill(
            &mut plan,
            &tally.active,
            self.completions().map(|all| (all, ended)),
            &closed,
            &replaced,
        );
        plan
    }

    fn completions(&self) -> Option<i64> {
        at(self.job, "spec.completions").and_then(Value::as_i64)
    }

    fn is_suspended(&self) -> bool {
        at(self.job, "spec.suspend").and_then(Value::as_bool) == Some(true)
    }

    /// Counts the pods into a plan.
    fn tally(&self, plan: &mut Plan) -> Tally<'_> {
        let job = self.job;
        // Indexes that a smaller number of completions has left out do not count any more.
        let completions = self.completions();
        let wanted = |field: &str| {
            let mut wanted = indexes(text(job, field));
            wanted.retain(|index| completions.is_none_or(|all| *index < all));
            wanted
        };
        let mut tally = Tally {
            active: Vec::new(),
            done: wanted("status.completedIndexes"),
            given_up: wanted("status.failedIndexes"),
            broken: None,
        };
        for pod in self.pods {
            let failed = self.has_failed(pod);
            if pod.is_terminating() && !is_over(pod) {
                plan.terminating += 1;
                if !failed {
                    continue;
                }
            }
            if is_over(pod) || failed {
                self.count_ended(pod, failed, plan, &mut tally);
            } else {
                plan.ready += i64::from(is_ready(pod));
                tally.active.push(pod);
            }
        }
        plan.active = i64::try_from(tally.active.len()).unwrap_or(i64::MAX);
        if is_indexed(job) {
            plan.succeeded = count(&tally.done);
            plan.indexes = Some(ranges(&tally.done));
        }
        if is_limited_by_index(job) {
            let done = &tally.done;
            tally.given_up.retain(|index| !done.contains(index));
            plan.failed_indexes = Some(ranges(&tally.given_up));
        }
        tally
    }

    /// Counts a pod that has ended or failed.
    fn count_ended(&self, pod: &Value, failed: bool, plan: &mut Plan, tally: &mut Tally<'_>) {
        let job = self.job;
        let completions = self.completions();
        let is_wanted = |index: i64| completions.is_none_or(|all| index < all);
        if failed && let Some(index) = index_of(pod).filter(|_| is_limited_by_index(job)) {
            let per_index = number(job, "spec.backoffLimitPerIndex", i64::MAX);
            let failures = failures_of(pod, FAILURES) + i64::from(!self.is_ignored(pod));
            // Pods that go because the job has failed say nothing of their indexes.
            let gives_up = !is_true(job, "FailureTarget")
                && (failures > per_index
                    || matches!(job_policies::of_failure(self.job, pod), Some(("FailIndex", _))));
            if gives_up && is_wanted(index) {
                tally.given_up.insert(index);
            }
        }
        if !self.uncounted(pod) {
            return;
        }
        plan.count.push(pod.name().to_owned());
        if text(pod, "status.phase") == "Succeeded" {
            let fresh = index_of(pod).is_none_or(|index| is_wanted(index) && tally.done.insert(index));
            plan.succeeded += i64::from(fresh || !is_indexed(job));
            return;
        }
        match job_policies::of_failure(self.job, pod) {
            Some(("Ignore", _)) => {}
            Some(("FailJob", why)) => {
                plan.failed += 1;
                tally.broken.get_or_insert(why);
            }
            _ => plan.failed += 1,
        }
    }

    /// How the job ends, if it does. `over`: its deadline.
    fn end(&self, plan: &Plan, tally: &Tally<'_>, over: Option<Timestamp>) -> Option<End> {
        let job = self.job;
        let given_up = count(&tally.given_up);
        let limit = number(job, "spec.backoffLimit", 6);
        let only_restarts = text(job, "spec.template.spec.restartPolicy") == "OnFailure";
        // Containers that are restarted where they are have reached the limit, and need not exceed it.
        let restarted = only_restarts && self.restarts() >= limit.max(1);
        let failed = |reason: &str, message: &str| {
            Some(End::Failed {
                reason: reason.to_owned(),
                message: message.to_owned(),
            })
        };
        if let Some(end) = self.decided() {
            return Some(end);
        }
        if let Some(message) = &tally.broken {
            return failed("PodFailurePolicy", message);
        }
        if plan.failed > limit || restarted {
            return failed(
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            );
        }
        if over.is_some_and(|at| until(at, self.now).is_none()) && !self.is_suspended() {
            return failed(
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            );
        }
        if is_limited_by_index(job) && given_up > number(job, "spec.maxFailedIndexes", i64::MAX) {
            return failed(
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            );
        }
        let completions = self.completions();
        if given_up > 0 && completions.is_some_and(|all| given_up + plan.succeeded >= all) {
            return failed("FailedIndexes", "Job has failed indexes");
        }
        let enough = job_policies::of_success(self.job, &tally.done).map(|message| End::Complete {
            reason: "SuccessPolicy".to_owned(),
            message,
        });
        enough.or_else(|| {
            self.is_complete(plan, completions).then(|| End::Complete {
                reason: "CompletionsReached".to_owned(),
                message: "Reached expected number of succeeded pods".to_owned(),
            })
        })
    }

    /// Where indexes have limits of their own: the failed pod of each index that gets another. It is not let go before that is
    /// there, which takes over the number of failures.
    fn replaced(&self, active: &[&Arc<Value>], closed: &BTreeSet<i64>) -> BTreeMap<i64, &Arc<Value>> {
        let mut held: BTreeMap<i64, &Arc<Value>> = BTreeMap::new();
        if !is_limited_by_index(self.job) {
            return held;
        }
        let running: BTreeSet<i64> = active.iter().filter_map(|pod| index_of(pod)).collect();
        let all = number(self.job, "spec.completions", 0);
        let rank = |pod: &Value| {
            let failures = failures_of(pod, FAILURES) + failures_of(pod, IGNORED);
            (failures, finished_at(pod))
        };
        for pod in self
            .pods
            .iter()
            .filter(|pod| self.uncounted(pod) && self.has_failed(pod))
        {
            let Some(index) = index_of(pod).filter(|index| *index < all) else {
                continue;
            };
            if closed.contains(&index) || running.contains(&index) {
                continue;
            }
            let last = held.entry(index).or_insert(pod);
            let ((before, then), (failures, at)) = (rank(last), rank(pod));
            if before <= failures && then <= at {
                *last = pod;
            }
        }
        held
    }

    /// The end of the job, if a condition has it already.
    fn decided(&self) -> Option<End> {
        let told = |kind: &str| {
            let found = condition(self.job, kind).filter(|found| text(found, "status") == "True")?;
            Some((
                text(found, "reason").to_owned(),
                text(found, "message").to_owned(),
            ))
        };
        let failed = told("FailureTarget").map(|(reason, message)| End::Failed { reason, message });
        failed
            .or_else(|| told("SuccessCriteriaMet").map(|(reason, message)| End::Complete { reason, message }))
    }

    /// The failures in a row, with those that are to be counted now. Those that do not count as failures are among
    /// them.
    fn failures_in_a_row(&self) -> Failures {
        let all = number(self.job, "spec.completions", i64::MAX);
        let told = |pod: &Value, word: &str| {
            list(self.job, &format!("status.uncountedTerminatedPods.{word}"))
                .iter()
                .any(|uid| uid.as_str() == Some(pod.uid()))
        };
        let has_place = |pod: &Value| !is_indexed(self.job) || index_of(pod).is_some_and(|index| index < all);
        let ends = |word: &str, is_one: &dyn Fn(&Value) -> bool| -> Vec<Timestamp> {
            self.pods
                .iter()
                .filter(|pod| self.uncounted(pod) && has_place(pod) && is_one(pod) && !told(pod, word))
                .filter_map(|pod| finished_at(pod))
                .collect()
        };
        let succeeded = ends("succeeded", &|pod| text(pod, "status.phase") == "Succeeded");
        let failed = ends("failed", &|pod| self.has_failed(pod));
        let size = |ends: &[Timestamp]| i64::try_from(ends.len()).unwrap_or(i64::MAX);
        match succeeded.into_iter().max() {
            Some(last) => {
                let since: Vec<Timestamp> = failed.into_iter().filter(|at| *at > last).collect();
                Failures {
                    in_a_row: size(&since),
                    last: since.into_iter().max(),
                }
            }
            None if failed.is_empty() => self.known,
            None => Failures {
                in_a_row: self.known.in_a_row + size(&failed),
                last: failed.into_iter().max(),
            },
        }
    }

    fn is_complete(&self, plan: &Plan, completions: Option<i64>) -> bool {
        match completions {
            // Without a number, one success is enough once all others have ended.
            None => plan.succeeded > 0 && plan.active == 0,
            Some(completions) => plan.succeeded >= completions,
        }
    }

    fn is_ignored(&self, pod: &Value) -> bool {
        matches!(job_policies::of_failure(self.job, pod), Some(("Ignore", _)))
    }

    /// How long the next pod waits after a failure at `at`, which was the `failures`th.
    fn retry_in(&self, at: Timestamp, failures: i64) -> Option<Duration> {
        let exponent = u32::try_from(failures.max(1) - 1).unwrap_or(u32::MAX).min(10);
        let Pace { retry, retry_max, .. } = self.pace;
        let delay = retry.saturating_mul(2_u32.pow(exponent)).min(retry_max);
        let over = at.saturating_add(delay).ok();
        over.and_then(|at| until(at, self.now)).filter(|_| failures > 0)
    }

    /// Which of the active pods are too many: those of indexes that are not wanted or have two pods, then as elsewhere.
    fn surplus(&self, active: &[&Arc<Value>], at_least: usize) -> Vec<String> {
        let mut left: Vec<Arc<Value>> = active.iter().map(|pod| Arc::clone(pod)).collect();
        sort_for_deletion(&mut left, &[]);
        let mut gone: Vec<String> = Vec::new();
        if is_indexed(self.job) {
            let completions = number(self.job, "spec.completions", 0);
            let mut by_index: BTreeMap<i64, Vec<String>> = BTreeMap::new();
            for pod in &left {
                match index_of(pod).filter(|index| *index < completions) {
                    Some(index) => by_index.entry(index).or_default().push(pod.name().to_owned()),
                    None => gone.push(pod.name().to_owned()),
                }
            }
            for mut names in by_index.into_values() {
                names.pop();
                gone.extend(names);
            }
        }
        let more = left
            .iter()
            .map(|pod| pod.name().to_owned())
            .filter(|name| !gone.contains(name));
        let missing = at_least.saturating_sub(gone.len());
        let more: Vec<String> = more.take(missing).collect();
        gone.extend(more);
        gone
    }

    /// Makes or removes pods so that as many run as are wanted. `completions`: how many there are to be, and how many have
    /// ended. `closed`: indexes that get no pod any more, `replaced`: failed pods that others may follow.
    fn fill(
        &self,
        plan: &mut Plan,
        active: &[&Arc<Value>],
        completions: Option<(i64, i64)>,
        closed: &BTreeSet<i64>,
        replaced: &BTreeMap<i64, &Arc<Value>>,
    ) {
        let parallelism = number(self.job, "spec.parallelism", 1);
        let wanted = match completions {
            None if plan.succeeded > 0 => plan.active,
            None => parallelism,
            Some((all, ended)) => (all - ended).min(parallelism),
        };
        let surplus = usize::try_from((plan.active - wanted).max(0)).unwrap_or_default();
        plan.delete = self.surplus(active, surplus);
        let replaced_only_when_gone = text(self.job, "spec.podReplacementPolicy") == "Failed";
        if !plan.delete.is_empty() {
            return;
        }
        let present = plan.active
            + if replaced_only_when_gone {
                plan.terminating
            } else {
                0
            };
        let missing = (wanted - present).max(0);
        if missing == 0 {
            return;
        }
        let by_index = is_limited_by_index(self.job);
        let row = plan.row;
        if let Some(left) = row
            .last
            .filter(|_| !by_index)
            .and_then(|at| self.retry_in(at, row.in_a_row))
        {
            return plan.wait(left);
        }
        if !is_indexed(self.job) {
            plan.create = (0..missing).map(|_| None).collect();
            return;
        }
        let taken: BTreeMap<i64, ()> = self
            .pods
            .iter()
            .filter(|pod| !is_over(pod) && (!pod.is_terminating() || replaced_only_when_gone))
            .filter_map(|pod| Some((index_of(pod)?, ())))
            .collect();
        let indexes: Vec<i64> = (0..completions.map_or(0, |(all, _)| all))
            .filter(|index| !closed.contains(index) && !taken.contains_key(index))
            .take(usize::try_from(missing).unwrap_or_default())
            .collect();
        let mut first_left: Option<Duration> = None;
        for index in indexes {
            if let Some(pod) = replaced.get(&index).filter(|_| by_index) {
                let (counted, ignored) = (failures_of(pod, FAILURES), failures_of(pod, IGNORED));
                let at = finished_at(pod);
                if let Some(left) = at.and_then(|at| self.retry_in(at, counted + ignored + 1)) {
                    first_left = Some(first_left.map_or(left, |first| first.min(left)));
                    continue;
                }
                let is_ignored = i64::from(self.is_ignored(pod));
                plan.failures
                    .insert(index, (counted + 1 - is_ignored, ignored + is_ignored));
            }
            plan.create.push(Some(index));
        }
        if let Some(left) = first_left.filter(|_| plan.create.is_empty()) {
            plan.wait(left);
        }
    }
}

impl Plan {
    fn wait(&mut self, left: Duration) {
        self.waits = true;
        self.next = Some(self.next.map_or(left, |next| next.min(left)));
    }
}

/// A pod that was deleted before it ran anywhere will never end by itself.
fn is_gone_for_good(pod: &Value) -> bool {
    text(pod, "spec.nodeName").is_empty() || number(pod, "metadata.deletionGracePeriodSeconds", 1) == 0
}

#[cfg(test)]
#[path = "job_plan_tests.rs"]
mod tests;
