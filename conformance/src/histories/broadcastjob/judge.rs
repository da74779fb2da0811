//! The invariants of a history, checked after every change.
//!
//! A node has one pod of a job at a time, and no more pods are active than the parallelism allows. A job that has ended makes no pods.
//! It is deleted when its time to live is over, and not before.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::histories::commits::{Numbers, in_order, of_whole};
use crate::histories::deeds::Deeds;
use crate::history::{Change, ChangeKind, list, number, text};

/// BroadcastJobs, as histories name them.
pub(super) const RESOURCE: &str = "broadcastjobs";
/// The number of nodes.
const NODES: i64 = 3;
/// The label of a pod that has the uid of its job.
const JOB: &str = "/metadata/labels/broadcastjob-controller-uid";
/// The place of the only node that a pod fits.
const NODE: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
/// A time to live may be so much shorter, since ends are written in whole seconds …
const EARLY_MS: i64 = 1000;
/// … and so much longer, while requests are refused.
const SLOW_MS: i64 = 30_000;

/// A job and its past.
#[derive(Debug, Clone, Default)]
struct Job {
    /// The parallelism on all nodes.
    parallelism: Numbers,
    ended_ms: Option<i64>,
    ttl_s: Option<i64>,
    gone: bool,
}

/// A pod.
#[derive(Debug, Clone)]
struct Pod {
    job: String,
    node: String,
    active: bool,
}

#[derive(Default)]
struct World {
    jobs: BTreeMap<String, Job>,
    pods: BTreeMap<String, Pod>,
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut world = World::default();
    let mut out = Vec::new();
    for change in in_order(history) {
        let fault = match change.resource.as_str() {
            RESOURCE => world.job(change),
            "pods" => world.pod(change).filter(|_| !deeds.outrun(change.at_ms)),
            _ => None,
        };
        out.extend(fault.map(|fault| format!("at {} ms, {}: {fault}", change.at_ms, change.name())));
    }
    let end_ms = history.last().map_or(0, |change| change.at_ms);
    out.extend(world.overdue(end_ms));
    out
}

impl World {
    /// Takes in a job; gives the error in its end.
    fn job(&mut self, change: &Change) -> Option<String> {
        let job = self
            .jobs
            .entry(text(&change.object, "/metadata/uid"))
            .or_default();
        if change.kind == ChangeKind::Deleted {
            job.gone = true;
            let lived_ms = job.ended_ms.map(|ended_ms| change.at_ms - ended_ms);
            return match (lived_ms, job.ttl_s) {
                (Some(lived_ms), Some(ttl_s)) if lived_ms < ttl_s * 1000 - EARLY_MS => Some(format!(
                    "deleted {lived_ms} ms after its end, not after {ttl_s} s"
                )),
                (Some(lived_ms), Some(ttl_s)) if lived_ms > ttl_s * 1000 + SLOW_MS => Some(format!(
                    "deleted only {lived_ms} ms after its end, not after {ttl_s} s"
                )),
                (Some(_), Some(_)) => None,
                _ => Some("deleted without an end or a time to live".to_owned()),
            };
        }
        job.parallelism.set(change.at_ms, parallelism(&change.object));
        let ttl = change
            .object
            .pointer("/spec/completionPolicy/ttlSecondsAfterFinished");
        job.ttl_s = ttl.and_then(Value::as_i64);
        let ended = list(&change.object, "/status/conditions")
            .iter()
            .any(|condition| matches!(text(condition, "/type").as_str(), "Complete" | "Failed"));
        if ended {
            job.ended_ms.get_or_insert(change.at_ms);
        }
        None
    }

    /// Takes in a pod; gives the error in its creation.
    fn pod(&mut self, change: &Change) -> Option<String> {
        let name = change.name();
        if change.kind == ChangeKind::Deleted {
            self.pods.remove(&name);
            return None;
        }
        let pod = Pod {
            job: text(&change.object, JOB),
            node: text(&change.object, NODE),
            active: !matches!(
                text(&change.object, "/status/phase").as_str(),
                "Succeeded" | "Failed"
            ) && text(&change.object, "/metadata/deletionTimestamp").is_empty(),
        };
        let is_new = !self.pods.contains_key(&name);
        let fault = is_new.then(|| self.created(&pod, change.at_ms)).flatten();
        self.pods.insert(name, pod);
        fault
    }

    /// A pod was created that should not have been.
    fn created(&self, pod: &Pod, at_ms: i64) -> Option<String> {
        let job = self.jobs.get(&pod.job)?;
        if let Some(ended_ms) = job.ended_ms.filter(|ended_ms| *ended_ms < at_ms) {
            return Some(format!("created {} ms after the end", at_ms - ended_ms));
        }
        let own = || self.pods.iter().filter(|(_, other)| other.job == pod.job);
        if let Some((other, _)) = own().find(|(_, other)| other.node == pod.node) {
            return Some(format!("created for {}, which has {other}", pod.node));
        }
        let active = own().filter(|(_, other)| other.active).count();
        let active = i64::try_from(active).unwrap_or(i64::MAX) + 1;
        let most = job.parallelism.most(at_ms);
        (active > most).then(|| format!("created as active pod {active} of {most}"))
    }

    /// The jobs whose time to live was over long ago.
    fn overdue(&self, end_ms: i64) -> impl Iterator<Item = String> {
        let overdue = self.jobs.iter().filter(move |(_, job)| {
            let due_ms = job
                .ended_ms
                .zip(job.ttl_s)
                .map(|(at_ms, ttl_s)| at_ms + ttl_s * 1000);
            !job.gone && due_ms.is_some_and(|due_ms| due_ms + SLOW_MS < end_ms)
        });
        overdue.map(|(uid, _)| format!("at the end job {uid} is there, though its time to live is over"))
    }
}

/// The parallelism of a job; a share is one of the nodes that fit, at most all of them.
fn parallelism(job: &Value) -> i64 {
    let given = job.pointer("/spec/parallelism");
    given.map_or(i64::MAX, |given| of_whole(given, NODES))
}

/// The differences between the job with its pods at the end, and the expected result on so many nodes that take pods.
pub(super) fn unlike(job: &Value, pods: &[Value], fitting: i64) -> Vec<String> {
    let mut wrongs = Vec::new();
    let uid = text(job, "/metadata/uid");
    let own: Vec<&Value> = pods.iter().filter(|pod| text(pod, JOB) == uid).collect();
    let with = |phase: &str| {
        let found = own.iter().filter(|pod| text(pod, "/status/phase") == phase);
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    };
    let phase = text(job, "/status/phase");
    let ends = text(job, "/spec/completionPolicy/type") == "Always";
    let is_over = matches!(phase.as_str(), "completed" | "failed");
    // A container that fails again and again waits ever longer, and its pod does not end.
    let restarts = text(job, "/spec/template/spec/restartPolicy") == "OnFailure";
    let crashes = restarts && own.iter().any(|pod| text(pod, "/status/phase") == "Running");
    if is_over || phase == "paused" || crashes {
        return wrongs;
    }
    let (desired, succeeded) = (number(job, "/status/desired"), number(job, "/status/succeeded"));
    if desired != fitting {
        wrongs.push(format!("at the end desired is {desired}, not {fitting}"));
    }
    if ends && fitting > 0 {
        wrongs.push(format!("at the end the job is {phase}"));
    }
    let failed = number(job, "/status/failed");
    if succeeded != with("Succeeded") || failed != with("Failed") {
        wrongs.push(format!(
            "at the end {succeeded} have succeeded and {failed} failed by the status"
        ));
    }
    let nodes: std::collections::BTreeSet<String> = own.iter().map(|pod| text(pod, NODE)).collect();
    if i64::try_from(nodes.len()).unwrap_or(i64::MAX) < fitting {
        wrongs.push(format!(
            "at the end pods are on {} nodes of {fitting}",
            nodes.len()
        ));
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
