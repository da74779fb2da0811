//! Jobs: pods that run to their end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Value, json};

use super::adoption::{claim, concerned};
use super::job_indexes::INDEX;
use super::job_plan::{
    End, FAILURES, FINALIZER, Failures, IGNORED, Pace, Plan, View, is_finished, is_limited_by_index,
};
use super::job_status::{Pass, Suspension, winding_up};
use super::pod_control::{self, SlowStart};
use super::pods::{from_template, owner_reference};
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, controller_of, text};

/// How many pods one pass makes at most (the real one's).
const BURST_MAX: usize = 500;

const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// How long the beginning of a generated name may be (the real one's).
const MAX_PREFIX: usize = 58;

/// The controller.
pub(crate) struct Jobs {
    /// The failures of each job so far.
    failures: BTreeMap<Key, Failures>,
    pace: Pace,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            failures: BTreeMap::new(),
            pace: Pace::REAL,
        }
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

    fn be_quick(&mut self) {
        self.pace = Pace::QUICK;
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
            self.pace.batch
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
            pace: self.pace,
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
    /// Carries a plan out: pods first, then the status in two writes, as the real controller makes them.
    async fn run(
        &self,
        cx: &mut Cx<'_>,
        job: &Arc<Value>,
        pods: &[Arc<Value>],
        plan: Plan,
    ) -> Result<Next, kube::Error> {
        let stamp = cx.stamp();
        let suspension = Suspension::of(job, &plan, &stamp);
        let (deleted, created, result) = self.pods(cx, job, pods, &plan).await;
        if let Some((reason, message)) = suspension.told {
            cx.normal(Res::Jobs, job, reason, message.to_owned());
        }
        let pass = Pass {
            job,
            pods,
            plan: &plan,
            stamp: &stamp,
            deleted,
            created,
        };
        let status = pass.status(suspension.start.as_ref());
        let conditions = pass.aimed(suspension.conditions.clone());
        // First it is told which pods will be counted, and how the job will end …
        if !plan.count.is_empty() || conditions != suspension.conditions {
            cx.set_status(Res::Jobs, job, &pass.announced(&status, &conditions))
                .await?;
            for pod in pass.counted() {
                unhold(cx, pod).await?;
            }
        }
        // … then they are counted, and it ends, once nothing of it runs any more.
        let (status, ended) = pass.counted_status(status, conditions);
        let newest = cx
            .cache
            .get(Res::Jobs, job.namespace(), job.name())
            .cloned()
            .unwrap_or_else(|| Arc::clone(job));
        cx.set_status(Res::Jobs, &newest, &status).await?;
        match ended {
            Some(End::Complete { .. }) => {
                if at(job, "spec.completions")
                    .and_then(Value::as_i64)
                    .is_some_and(|all| plan.succeeded > all)
                {
                    let text = "Too many succeeded pods running after completion count reached";
                    cx.warning(Res::Jobs, job, "TooManySucceededPods", text.to_owned());
                }
                cx.normal(Res::Jobs, job, "Completed", "Job completed".to_owned());
            }
            Some(End::Failed { reason, message }) => cx.warning(Res::Jobs, job, reason, message.clone()),
            None => {}
        }
        result?;
        // What was written is looked at again, together with what else happens.
        let wrote = deleted > 0 || !plan.count.is_empty();
        let next = if wrote {
            let batch = self.pace.batch;
            Some(plan.next.map_or(batch, |next| next.min(batch)))
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
