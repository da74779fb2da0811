//! ReplicaSets: so many pods.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::adoption::{claim, concerned, keeps_all};
use super::pod_control::{self, SlowStart, refusal};
use super::pods::{availability, from_template, owner_reference, sort_for_deletion};
use crate::runtime::is_active;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Numbers, Res, condition, list, number, text};

/// How many pods one pass makes or deletes at most (the real one's).
const BURST_MAX: usize = 500;
const FAILURE: &str = "ReplicaFailure";

/// The controller, of ReplicaSets or of the ReplicationControllers that were before them.
pub(crate) struct ReplicaSets(pub(crate) Res);

/// The actions of a pass.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Plan {
    pub create: usize,
    /// Names of the pods to delete, in that order.
    pub delete: Vec<String>,
}

/// Why a pass did not do all it should.
struct Failure {
    reason: &'static str,
    message: String,
    error: kube::Error,
}

/// How many pods there are.
#[derive(Debug, PartialEq)]
struct Counted {
    numbers: Numbers,
    /// Active ones that have all labels of the template.
    labelled: usize,
    available: usize,
}

fn wanted(set: &Value) -> usize {
    usize::try_from(number(set, "spec.replicas", 1)).unwrap_or_default()
}

/// How many pods are missing, or which are too many. Only for the latter is it asked where related pods are.
pub(super) fn plan(set: &Value, pods: &[Arc<Value>], related: impl FnOnce() -> Vec<Arc<Value>>) -> Plan {
    let wanted = wanted(set);
    let mut active: Vec<Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
    if active.len() < wanted {
        return Plan {
            create: (wanted - active.len()).min(BURST_MAX),
            delete: Vec::new(),
        };
    }
    let surplus = (active.len() - wanted).min(BURST_MAX);
    if surplus > 0 {
        sort_for_deletion(&mut active, &related());
    }
    Plan {
        create: 0,
        delete: active
            .iter()
            .take(surplus)
            .map(|pod| pod.name().to_owned())
            .collect(),
    }
}

/// Whether a pod has all labels of a set's template.
fn is_labelled(set: &Value, pod: &Value) -> bool {
    let labels = set
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object);
    let have = string_map(pod, "labels");
    labels.is_none_or(|labels| labels.iter().all(|(key, value)| have.get(key) == Some(value)))
}

/// Counts pods. And when another one will become available.
fn count(set: &Value, pods: &[Arc<Value>], now: Timestamp) -> (Counted, Option<Duration>) {
    let min_ready = number(set, "spec.minReadySeconds", 0);
    let mut counted = Counted {
        numbers: Numbers::default(),
        labelled: 0,
        available: 0,
    };
    let mut next = None;
    for pod in pods {
        counted.numbers.add(Numbers::of(pod));
        if !is_active(pod) {
            continue;
        }
        counted.labelled += usize::from(is_labelled(set, pod));
        let (is, left) = availability(pod, min_ready, now);
        counted.available += usize::from(is);
        next = match (next, left) {
            (Some(one), Some(other)) => Some(std::cmp::min::<Duration>(one, other)),
            (one, other) => one.or(other),
        };
    }
    (counted, next)
}

/// The same without a look at any pod, where that is enough: there are as many as there should be, and all that are ready are available.
fn known(cache: &Cache, res: Res, set: &Value) -> Option<Counted> {
    if number(set, "spec.minReadySeconds", 0) != 0 || set.is_terminating() || !keeps_all(cache, res, set) {
        return None;
    }
    let mut counted = Counted {
        numbers: Numbers::default(),
        labelled: 0,
        available: 0,
    };
    for alike in cache.owned_numbers(set.uid()) {
        counted.numbers.add(alike.numbers);
        if is_labelled(set, &alike.labelled) {
            counted.labelled += alike.numbers.active;
        }
    }
    counted.available = counted.numbers.ready;
    (counted.numbers.active == wanted(set)).then_some(counted)
}

/// The status.
fn status(res: Res, set: &Value, counted: &Counted, failure: Option<(&str, &str)>, stamp: &str) -> Value {
    let numbers = &counted.numbers;
    let mut status = json!({"replicas": numbers.active, "observedGeneration": set.generation()});
    if res == Res::ReplicaSets {
        status["terminatingReplicas"] = Value::from(numbers.terminating);
    }
    for (field, count) in [
        ("fullyLabeledReplicas", counted.labelled),
        ("readyReplicas", numbers.ready),
        ("availableReplicas", counted.available),
    ] {
        // Zeroes are not written, as with Go's `omitempty`.
        if count > 0 {
            status[field] = Value::from(count);
        }
    }
    // What is told of the first failure stays until there is none.
    let mut conditions = list(set, "status.conditions").to_vec();
    match failure {
        None => conditions.retain(|condition| text(condition, "type") != FAILURE),
        Some((reason, message)) if condition(set, FAILURE).is_none() => conditions.push(json!({
            "type": FAILURE, "status": "True", "reason": reason, "message": message, "lastTransitionTime": stamp,
        })),
        Some(_) => {}
    }
    if !conditions.is_empty() {
        status["conditions"] = Value::from(conditions);
    }
    status
}

#[async_trait]
impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        match self.0 {
            Res::ReplicationControllers => "replication-controller",
            _ => "replicaset-controller",
        }
    }

    fn watches(&self) -> &'static [Res] {
        match self.0 {
            Res::ReplicationControllers => &[Res::ReplicationControllers, Res::Pods],
            _ => &[Res::ReplicaSets, Res::Pods],
        }
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Pods => concerned(cache, self.0, object, old),
            _ => vec![Key::of(object)],
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = cx.cache.get(self.0, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        if let Some(counted) = known(cx.cache, self.0, &set) {
            debug_assert_eq!(
                counted,
                count(&set, &cx.cache.owned(Res::Pods, set.uid()), cx.now()).0,
                "what was counted pod by pod is what there is"
            );
            let status = status(self.0, &set, &counted, None, &cx.stamp());
            cx.set_status(self.0, &set, &status).await?;
            return Ok(Next::Change);
        }
        let pods = claim(cx, self.0, &set, Res::Pods).await?;
        let (mut failure, mut acted) = (None, false);
        if !set.is_terminating() {
            let plan = plan(&set, &pods, || related(cx.cache, &set));
            acted = plan != Plan::default();
            failure = act(cx, self.0, &set, &pods, plan).await.err();
        }
        // As the real one does, the status tells of the pods that were there before; those made now are told in the next pass.
        let told = failure
            .as_ref()
            .map(|failure| (failure.reason, failure.message.as_str()));
        let (counted, next) = count(&set, &pods, cx.now());
        let status = status(self.0, &set, &counted, told, &cx.stamp());
        cx.set_status(self.0, &set, &status).await?;
        match failure {
            Some(failure) => Err(failure.error),
            None if acted => Ok(Next::After(Duration::ZERO)),
            None => Ok(next.into()),
        }
    }
}

/// The pods of all sets of the same owner: their nodes show which nodes are fuller.
fn related(cache: &Cache, set: &Value) -> Vec<Arc<Value>> {
    let owner = crate::runtime::controller_of(set).map(|owner| text(owner, "uid").to_owned());
    match owner {
        Some(owner) => cache
            .owned(Res::ReplicaSets, &owner)
            .iter()
            .flat_map(|set| cache.owned(Res::Pods, set.uid()))
            .collect(),
        None => cache.owned(Res::Pods, set.uid()),
    }
}

async fn act(cx: &mut Cx<'_>, res: Res, set: &Value, pods: &[Arc<Value>], plan: Plan) -> Result<(), Failure> {
    let owner = owner_reference(res.api_version(), res.kind(), set);
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    let (mut pace, mut made, mut result) = (SlowStart::new(), 0, Ok(()));
    while made < plan.create && pace.goes_on() {
        let mut pod = from_template(&template, owner.clone());
        pod["metadata"]["generateName"] = Value::from(format!("{}-", set.name()));
        if let Err(error) = pod_control::make(cx, res, set, pod).await {
            pace.failed();
            result = result.and(Err(Failure {
                reason: "FailedCreate",
                message: refusal(&error),
                error,
            }));
        }
        made += 1;
    }
    for name in plan.delete {
        let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
            continue;
        };
        if let Err(error) = pod_control::delete(cx, res, set, pod).await {
            result = result.and(Err(Failure {
                reason: "FailedDelete",
                message: format!("unable to delete pods: {}", refusal(&error)),
                error,
            }));
        }
    }
    result
}
