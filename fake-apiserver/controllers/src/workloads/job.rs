//! Jobs: pods that run to their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Value, json};

use super::adoption::{claim, concerned};
use super::job_plan::{
    End, FAILURES, FINALIZER, Failures, IGNORED, INDEX, Plan, View, is_finished, is_indexed,
    is_limited_by_index,
};
use super::pod_control::{self, SlowStart};
use super::pods::{from_template, owner_reference};
use crate::runtime::is_ready;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, controller_of, list, text};

/// How long changes of pods are gathered before a job is looked at (the real one's).
const BATCH: Duration = Duration::from_secs(1);

/// How many pods one pass makes at most (the real one's).
const BURST_MAX: usize = 500;

const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// How long the beginning of a generated name may be (the real one's).
const MAX_PREFIX: usize = 58;

/// The controller.
#[derive(Default)]
pub(crate) struct Jobs {
    /// The failures of each job so far.
    failures: BTreeMap<Key, Failures>,
}

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

/// A pod of a job. `failures`: how often pods of its index have failed, and how often that was not counted.
fn new_pod(job: &Value, index: Option<i64>, failures: (i64, i64)) -> Value {
    let mut pod = from_template(&job["spec"]["template"], owner_reference("batch/v1", "Job", job));
    pod["metadata"]["finalizers"] = json!([FINALIZER]);
    let Some(index) = index else {
        pod["metadata"]["generateName"] = Value::from(format!("{}-", job.name()));
        return pod;
    };
    let number = format!("-{index}-");
    let room = MAX_PREFIX.saturating_sub(number.len());
    let prefix = job.name().get(..room).unwrap_or_else(|| job.name());
    pod["metadata"]["generateName"] = Value::from(format!("{prefix}{number}"));
    pod["metadata"]["annotations"][INDEX] = Value::from(index.to_string());
    if is_limited_by_index(job) {
        let (counted, ignored) = failures;
        pod["metadata"]["annotations"][FAILURES] = Value::from(counted.to_string());
        if ignored > 0 {
            pod["metadata"]["annotations"][IGNORED] = Value::from(ignored.to_string());
        }
    }
    pod["metadata"]["labels"][INDEX] = Value::from(index.to_string());
    pod["spec"]["hostname"] = Value::from(format!("{}-{index}", job.name()));
    let field = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")}});
    for list in ["initContainers", "containers"] {
        let containers = pod
            .pointer_mut(&format!("/spec/{list}"))
            .and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut env = container
                .get("env")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            if env.iter().all(|known| text(known, "name") != INDEX_VARIABLE) {
                env.push(json!({"name": INDEX_VARIABLE, "valueFrom": field}));
                container["env"] = Value::Array(env);
            }
        }
    }
    pod
}

#[async_trait]
impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Jobs, Res::Pods]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Jobs => vec![Key::of(object)],
            _ => concerned(cache, Res::Jobs, object, old),
        }
    }

    fn delay(&self, res: Res, object: &Value, old: Option<&Value>) -> Duration {
        let own_status = old.is_some_and(|old| old.generation() == object.generation());
        if res == Res::Pods || own_status {
            BATCH
        } else {
            Duration::ZERO
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(job) = cx.cache.get(Res::Jobs, &key.namespace, &key.name).cloned() else {
            self.failures.remove(key);
            let left = left_behind(cx.cache, key);
            return release(cx, &left).await.map(|()| Next::Change);
        };
        if !text(&job, "spec.managedBy").is_empty()
            && text(&job, "spec.managedBy") != "kubernetes.io/job-controller"
        {
            return Ok(Next::Change);
        }
        let pods = if is_finished(&job) {
            cx.cache.owned(Res::Pods, job.uid())
        } else {
            claim(cx, Res::Jobs, &job, Res::Pods).await?
        };
        let plan = View {
            job: &job,
            pods: &pods,
            now: cx.now(),
            known: self.failures.get(key).copied().unwrap_or_default(),
        }
        .plan();
        if job.is_terminating() {
            let left = left_behind(cx.cache, key);
            release(cx, &left).await?;
            if !is_finished(&job) {
                cx.set_status(Res::Jobs, &job, &winding_up(&job, &plan)).await?;
            }
            return Ok(Next::Change);
        }
        if is_finished(&job) {
            self.failures.remove(key);
            release(cx, &pods).await?;
            return Ok(Next::Change);
        }
        let row = plan.row;
        let counts = !plan.count.is_empty();
        let next = self.run(cx, &job, &pods, plan).await?;
        if counts {
            self.failures.insert(key.clone(), row);
        }
        Ok(next)
    }
}

/// The status of a job that is about to go: its pods are not held any more, so that none of them is counted as it ends.
fn winding_up(job: &Value, plan: &Plan) -> Value {
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

/// The pods with a finalizer of a job that is being deleted or gone, also those that it does not own any more: no other
/// controller would let them go.
fn left_behind(cache: &Cache, key: &Key) -> Vec<Arc<Value>> {
    let of_job = |pod: &Value| match controller_of(pod) {
        Some(owner) => text(owner, "kind") == "Job" && text(owner, "name") == key.name,
        None => string_map(pod, "labels").get(NAME_LABEL).and_then(Value::as_str) == Some(key.name.as_str()),
    };
    cache
        .in_namespace(Res::Pods, &key.namespace)
        .filter(|pod| pod.finalizers().contains(&FINALIZER) && of_job(pod))
        .cloned()
        .collect()
}

/// Pods of a job that has ended, or is about to go, are held no longer.
async fn release(cx: &mut Cx<'_>, pods: &[Arc<Value>]) -> Result<(), kube::Error> {
    for pod in pods {
        if pod.finalizers().contains(&FINALIZER) {
            unhold(cx, pod).await?;
        }
    }
    Ok(())
}

async fn unhold(cx: &mut Cx<'_>, pod: &Value) -> Result<(), kube::Error> {
    let left: Vec<&str> = pod
        .finalizers()
        .into_iter()
        .filter(|name| *name != FINALIZER)
        .collect();
    let patch = json!({"metadata": {"finalizers": left}});
    match cx.patch(Res::Pods, pod, "", patch).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}

impl Jobs {
    async fn run(
        &self,
        cx: &mut Cx<'_>,
        job: &Arc<Value>,
        pods: &[Arc<Value>],
        plan: Plan,
    ) -> Result<Next, kube::Error> {
        let stamp = cx.stamp();
        let suspended = at(job, "spec.suspend").and_then(Value::as_bool) == Some(true);
        let mut conditions = list(job, "status.conditions").to_vec();
        let (mut start, mut told) = (at(job, "status.startTime").cloned(), None);
        if suspended && plan.end.is_none() {
            if condition(job, "Suspended").is_none_or(|known| text(known, "status") != "True") {
                put_condition(
                    &mut conditions,
                    "Suspended",
                    "True",
                    "JobSuspended",
                    "Job suspended",
                    &stamp,
                );
                told = Some(("Suspended", "Job suspended"));
            }
            start = None;
        } else {
            if condition(job, "Suspended").is_some_and(|known| text(known, "status") == "True") {
                put_condition(
                    &mut conditions,
                    "Suspended",
                    "False",
                    "JobResumed",
                    "Job resumed",
                    &stamp,
                );
                told = Some(("Resumed", "Job resumed"));
            }
            start = start.or_else(|| Some(Value::from(stamp.clone())));
        }
        let (deleted, created, result) = self.pods(cx, job, pods, &plan).await;
        let is_ready_one = |name: &&String| pods.iter().any(|pod| pod.name() == **name && is_ready(pod));
        let gone = usize::try_from(deleted).unwrap_or_default();
        let ready = plan.ready
            - plan
                .delete
                .iter()
                .take(gone)
                .filter(is_ready_one)
                .map(|_| 1)
                .sum::<i64>();
        if let Some((reason, message)) = told {
            cx.normal(Res::Jobs, job, reason, message.to_owned());
        }
        let active = if plan.waits {
            0
        } else {
            plan.active - deleted + created
        };
        let mut status = json!({"terminating": plan.terminating + deleted, "uncountedTerminatedPods": {}});
        for (field, value) in [
            ("startTime", start),
            ("completionTime", at(job, "status.completionTime").cloned()),
        ] {
            if let Some(value) = value {
                status[field] = value;
            }
        }
        status["ready"] = Value::from(ready);
        let counts = |status: &mut Value, succeeded: i64, failed: i64| {
            for (field, count) in [("active", active), ("succeeded", succeeded), ("failed", failed)] {
                if count > 0 {
                    status[field] = Value::from(count);
                }
            }
        };
        if let Some(indexes) = plan.indexes.as_ref().filter(|_| is_indexed(job)) {
            status["completedIndexes"] = Value::from(indexes.clone());
        }
        if let Some(indexes) = &plan.failed_indexes {
            status["failedIndexes"] = Value::from(indexes.clone());
        }
        // First it is told which pods will be counted, and how the job will end …
        let mut target = conditions.clone();
        match &plan.end {
            Some(End::Complete { reason, message }) => {
                put_condition(&mut target, "SuccessCriteriaMet", "True", reason, message, &stamp);
            }
            Some(End::Failed { reason, message }) => {
                put_condition(&mut target, "FailureTarget", "True", reason, message, &stamp);
            }
            None => {}
        }
        if !plan.count.is_empty() || target != conditions {
            let mut first = status.clone();
            counts(
                &mut first,
                at(job, "status.succeeded").and_then(Value::as_i64).unwrap_or(0),
                at(job, "status.failed").and_then(Value::as_i64).unwrap_or(0),
            );
            for (word, over) in [("succeeded", "Succeeded"), ("failed", "Failed")] {
                let uids: Vec<&str> = pods
                    .iter()
                    .filter(|pod| plan.count.iter().any(|name| name == pod.name()))
                    .filter(|pod| (text(pod, "status.phase") == "Succeeded") == (over == "Succeeded"))
                    .map(|pod| pod.uid())
                    .collect();
                if !uids.is_empty() {
                    first["uncountedTerminatedPods"][word] = json!(uids);
                }
            }
            if !target.is_empty() {
                first["conditions"] = json!(target);
            }
            cx.set_status(Res::Jobs, job, &first).await?;
            for pod in pods
                .iter()
                .filter(|pod| plan.count.iter().any(|name| name == pod.name()))
            {
                unhold(cx, pod).await?;
            }
        }
        // … then they are counted, and it ends, once nothing of it runs any more.
        counts(&mut status, plan.succeeded, plan.failed);
        let quiet = active == 0 && plan.terminating + deleted == 0;
        let mut ended = None;
        if quiet {
            match &plan.end {
                Some(End::Complete { reason, message }) => {
                    put_condition(&mut target, "Complete", "True", reason, message, &stamp);
                    status["completionTime"] = Value::from(stamp.clone());
                    ended = Some(("Completed", "Job completed".to_owned(), true));
                }
                Some(End::Failed { reason, message }) => {
                    put_condition(&mut target, "Failed", "True", reason, message, &stamp);
                    ended = Some((reason.as_str(), message.clone(), false));
                }
                None => {}
            }
        }
        if !target.is_empty() {
            status["conditions"] = json!(target);
        }
        let newest = cx
            .cache
            .get(Res::Jobs, job.namespace(), job.name())
            .cloned()
            .unwrap_or_else(|| Arc::clone(job));
        cx.set_status(Res::Jobs, &newest, &status).await?;
        match ended {
            Some((reason, message, true)) => {
                if at(job, "spec.completions")
                    .and_then(Value::as_i64)
                    .is_some_and(|all| plan.succeeded > all)
                {
                    let text = "Too many succeeded pods running after completion count reached";
                    cx.warning(Res::Jobs, job, "TooManySucceededPods", text.to_owned());
                }
                cx.normal(Res::Jobs, job, reason, message);
            }
            Some((reason, message, false)) => cx.warning(Res::Jobs, job, reason, message),
            None => {}
        }
        result?;
        // What was written is looked at again, together with what else happens.
        let wrote = deleted > 0 || !plan.count.is_empty();
        let next = if wrote {
            Some(plan.next.map_or(BATCH, |next| next.min(BATCH)))
        } else {
            plan.next
        };
        Ok(next.into())
    }

    /// Deletes and makes pods; gives how many of each.
    async fn pods(
        &self,
        cx: &mut Cx<'_>,
        job: &Value,
        pods: &[Arc<Value>],
        plan: &Plan,
    ) -> (i64, i64, Result<(), kube::Error>) {
        let (mut deleted, mut created) = (0, 0);
        for name in &plan.delete {
            let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
                continue;
            };
            // Of a job that goes on, or ends well, they are not to count as failed.
            let counts = matches!(plan.end, Some(End::Failed { .. }));
            if !counts
                && pod.finalizers().contains(&FINALIZER)
                && let Err(error) = unhold(cx, pod).await
            {
                return (deleted, created, Err(error));
            }
            if let Err(error) = pod_control::delete(cx, Res::Jobs, job, pod).await {
                return (deleted, created, Err(error));
            }
            deleted += 1;
        }
        let (mut pace, mut result) = (SlowStart::new(), Ok(()));
        for index in plan.create.iter().take(BURST_MAX) {
            if !pace.goes_on() {
                break;
            }
            let failures = index.and_then(|index| plan.failures.get(&index)).copied();
            let pod = new_pod(job, *index, failures.unwrap_or_default());
            match pod_control::make(cx, Res::Jobs, job, pod).await {
                Ok(_) => created += 1,
                Err(error) => {
                    pace.failed();
                    result = result.and(Err(error));
                }
            }
        }
        (deleted, created, result)
    }
}
