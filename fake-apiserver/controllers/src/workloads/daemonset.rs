//! DaemonSets: a pod on every node that fits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client_kit::Backoff;
use machinery::meta::ObjectMeta as _;
use shared_json::Value;

use super::adoption::{claim, concerned};
use super::daemonset_plan::{Plan, View};
use super::daemonset_pods::{REVISION_LABEL, concerns, hash_of, new_pod, node_of};
use super::pod_control::{self, SlowStart};
use super::revisions::{ensure, truncate, without_doubles};
use super::statefulset::claimed;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, number, text};

/// How many pods one pass makes or deletes at most (the real one's).
const BURST_MAX: usize = 250;

/// How long the first pod that fails after another on its node stays, and the longest that any does (the controller's).
const FAILED_DELAY_MIN: Duration = Duration::from_secs(1);
const FAILED_DELAY_MAX: Duration = Duration::from_secs(15 * 60);
/// The same where nothing is to wait for long.
const QUICK_FAILED_DELAY_MIN: Duration = Duration::from_millis(1);
const QUICK_FAILED_DELAY_MAX: Duration = Duration::from_millis(900);

/// The controller.
pub(crate) struct DaemonSets {
    failures: Failures,
    /// By uid: the version of a set in which nothing is new but the status that a pass has just written.
    written: BTreeMap<String, String>,
}

impl Default for DaemonSets {
    fn default() -> Self {
        Self {
            failures: Failures::new(FAILED_DELAY_MIN, FAILED_DELAY_MAX),
            written: BTreeMap::new(),
        }
    }
}

/// Where pods have failed: the set's uid and observed generation, and the node.
type Failures = Backoff<(String, i64, String)>;

fn failure_key(set: &Value, node: &str) -> (String, i64, String) {
    let seen = number(set, "status.observedGeneration", 0);
    (set.uid().to_owned(), seen, node.to_owned())
}

/// Whether a change of a pod leaves all as it is that a pass looks at.
fn is_the_same(old: &Value, new: &Value) -> bool {
    let seen = |pod: &Value| {
        let phase = pod.pointer("/status/phase").cloned();
        (
            pod.get("metadata").cloned(),
            pod.get("spec").cloned(),
            phase,
            condition(pod, "Ready").cloned(),
        )
    };
    let ((mut one, spec, phase, ready), (mut other, other_spec, other_phase, other_ready)) =
        (seen(old), seen(new));
    for metadata in [&mut one, &mut other] {
        for field in ["resourceVersion", "managedFields"] {
            if let Some(metadata) = metadata.as_mut().and_then(Value::as_object_mut) {
                metadata.remove(field);
            }
        }
    }
    (one, spec, phase, ready) == (other, other_spec, other_phase, other_ready)
}

async fn act(
    cx: &mut Cx<'_>,
    set: &Value,
    pods: &[Arc<Value>],
    hash: &str,
    plan: Plan,
) -> Result<(), kube::Error> {
    let (mut pace, mut result) = (SlowStart::new(), Ok(()));
    for node in plan.create.iter().take(BURST_MAX) {
        if !pace.goes_on() {
            break;
        }
        let made = pod_control::make(cx, Res::DaemonSets, set, new_pod(set, node, hash)).await;
        if made.is_err() {
            pace.failed();
        }
        result = result.and(made.map(|_| ()));
    }
    for name in plan.delete.iter().take(BURST_MAX) {
        let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
            continue;
        };
        if plan.failed.contains(name) {
            let (namespace, node) = (set.namespace(), node_of(pod));
            if text(pod, "status.phase") == "Succeeded" {
                let text = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
                );
                cx.normal(Res::DaemonSets, set, "SucceededDaemonPod", text);
            } else {
                let text =
                    format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
                cx.warning(Res::DaemonSets, set, "FailedDaemonPod", text);
            }
        }
        result = result.and(pod_control::delete(cx, Res::DaemonSets, set, pod).await);
    }
    result
}

#[async_trait]
impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::DaemonSets, Res::Pods, Res::Nodes, Res::Revisions]
    }

    fn be_quick(&mut self) {
        self.failures = Failures::new(QUICK_FAILED_DELAY_MIN, QUICK_FAILED_DELAY_MAX);
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::DaemonSets
                if self.written.get(object.uid()).map(String::as_str) == Some(object.resource_version()) =>
            {
                Vec::new()
            }
            Res::DaemonSets => vec![Key::of(object)],
            Res::Pods if old.is_some_and(|old| is_the_same(old, object)) => Vec::new(),
            Res::Pods => concerned(cache, Res::DaemonSets, object, old),
            Res::Nodes => {
                let relevant = |node: &Value| {
                    (
                        node.pointer("/spec/taints").cloned(),
                        node.pointer("/metadata/labels").cloned(),
                    )
                };
                // One that is gone concerns none.
                let Some(node) = cache.get(Res::Nodes, "", object.name()) else {
                    return Vec::new();
                };
                if old.is_some_and(|old| relevant(old) == relevant(object)) {
                    return Vec::new();
                }
                cache
                    .all(Res::DaemonSets)
                    .filter(|set| concerns(set, node, &cache.owned(Res::Pods, set.uid())))
                    .map(|set| Key::of(set))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = cx.cache.get(Res::DaemonSets, &key.namespace, &key.name).cloned() else {
            self.written.clear();
            return Ok(Next::Change);
        };
        // Its revisions may be gone before its pods: nothing can be told of it any more.
        if set.is_terminating() {
            return Ok(Next::Change);
        }
        let mut pods = claim(cx, Res::DaemonSets, &set, Res::Pods).await?;
        let revisions = claimed(cx, Res::DaemonSets, &set).await?;
        let revisions = without_doubles(cx, &set, revisions, &mut pods, REVISION_LABEL).await?;
        let history = ensure(cx, Res::DaemonSets, &set, revisions, REVISION_LABEL).await?;
        let hash = hash_of(&history.update).to_owned();
        let nodes: Vec<Arc<Value>> = cx.cache.all(Res::Nodes).cloned().collect();
        let now = cx.now();
        let delays: BTreeMap<&str, Duration> = pods
            .iter()
            .filter(|pod| text(pod, "status.phase") == "Failed")
            .filter_map(|pod| {
                Some((
                    node_of(pod),
                    self.failures.delay(&failure_key(&set, node_of(pod)), now)?,
                ))
            })
            .collect();
        let held: BTreeSet<String> = delays.keys().map(|node| (*node).to_owned()).collect();
        let plan = View::new(&set, &nodes, &pods, &hash, now, &held).plan();
        for pod in pods.iter().filter(|pod| text(pod, "status.phase") == "Failed") {
            if plan.failed.iter().any(|name| name == pod.name()) {
                self.failures.note(failure_key(&set, node_of(pod)), now);
            }
        }
        let mut result = act(cx, &set, &pods, &hash, plan).await;
        if result.is_ok() {
            let live = |revision: &Value| pods.iter().any(|pod| hash_of(pod) == hash_of(revision));
            result = truncate(cx, &set, &history, live, true).await;
        }
        let later = delays.into_values().min();
        let pods = cx.cache.owned(Res::Pods, set.uid());
        let (status, next) =
            View::new(&set, &nodes, &pods, &hash, cx.now(), &held).status(history.collisions);
        if cx.set_status(Res::DaemonSets, &set, &status).await?
            && let Some(written) = cx.cache.get(Res::DaemonSets, &key.namespace, &key.name)
        {
            let version = written.resource_version().to_owned();
            self.written.insert(set.uid().to_owned(), version);
        }
        result?;
        Ok([later, next].into_iter().flatten().min().into())
    }
}

#[cfg(test)]
#[path = "daemonset_tests.rs"]
mod tests;
