//! ReplicaSets: so many pods.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use shared_json::{Value, json};

use super::claim::{claim, concerned};
use super::pods::{
    availability, from_template, is_active, is_over, is_ready, owner_reference, sort_for_deletion,
};
use crate::controllers::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, list, number, text};
use crate::meta::{ObjectMeta as _, string_map};

/// How many pods one pass makes or deletes at most (the real one's).
const BURST_MAX: usize = 500;
const FAILURE: &str = "ReplicaFailure";

/// The controller, of ReplicaSets or of the ReplicationControllers that were before them.
pub(in crate::controllers) struct ReplicaSets(pub(in crate::controllers) Res);

/// What a pass does.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Plan {
    pub create: usize,
    /// Names of the pods to delete, in that order.
    pub delete: Vec<String>,
}

/// How many pods are missing, or which are too many.
pub(super) fn plan(set: &Value, pods: &[Arc<Value>], related: &[Arc<Value>]) -> Plan {
    let wanted = usize::try_from(number(set, "spec.replicas", 1)).unwrap_or_default();
    let mut active: Vec<Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
    if active.len() < wanted {
        return Plan {
            create: (wanted - active.len()).min(BURST_MAX),
            delete: Vec::new(),
        };
    }
    let surplus = (active.len() - wanted).min(BURST_MAX);
    sort_for_deletion(&mut active, related);
    Plan {
        create: 0,
        delete: active
            .iter()
            .take(surplus)
            .map(|pod| pod.name().to_owned())
            .collect(),
    }
}

/// The status, and when a pod will become available.
pub(super) fn status(
    res: Res,
    set: &Value,
    pods: &[Arc<Value>],
    failure: Option<(&str, &str)>,
    now: Timestamp,
    stamp: &str,
) -> (Value, Option<Duration>) {
    let min_ready = number(set, "spec.minReadySeconds", 0);
    let labels = set
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object);
    let active: Vec<&Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).collect();
    let labelled = active
        .iter()
        .filter(|pod| {
            let have = string_map(pod, "labels");
            labels.is_none_or(|labels| labels.iter().all(|(key, value)| have.get(key) == Some(value)))
        })
        .count();
    let (mut available, mut next) = (0, None);
    for pod in &active {
        let (is, left) = availability(pod, min_ready, now);
        available += i64::from(is);
        next = match (next, left) {
            (Some(one), Some(other)) => Some(std::cmp::min::<Duration>(one, other)),
            (one, other) => one.or(other),
        };
    }
    let terminating = pods
        .iter()
        .filter(|pod| pod.is_terminating() && !is_over(pod))
        .count();
    let mut status = json!({"replicas": active.len(), "observedGeneration": set.generation()});
    if res == Res::ReplicaSets {
        status["terminatingReplicas"] = Value::from(terminating);
    }
    for (field, count) in [
        (
            "fullyLabeledReplicas",
            i64::try_from(labelled).unwrap_or_default(),
        ),
        (
            "readyReplicas",
            active
                .iter()
                .filter(|pod| is_ready(pod))
                .count()
                .try_into()
                .unwrap_or_default(),
        ),
        ("availableReplicas", available),
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
    (status, next)
}

/// The words of the API server when it refuses something.
pub(in crate::controllers) fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
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
        let pods = claim(cx, self.0, &set, Res::Pods).await?;
        let (mut failure, mut acted) = (None, false);
        if !set.is_terminating() {
            let related = related(cx.cache, &set);
            let plan = plan(&set, &pods, &related);
            acted = plan != Plan::default();
            if let Err(error) = act(cx, self.0, &set, &pods, plan).await {
                failure = Some(error);
            }
        }
        // As the real one does, the status tells of the pods that were there before; those made now are told in the next pass.
        let told = failure.as_ref().map(|(reason, error)| (*reason, refusal(error)));
        let told = told.as_ref().map(|(reason, message)| (*reason, message.as_str()));
        let (status, next) = status(self.0, &set, &pods, told, cx.now(), &cx.stamp());
        cx.set_status(self.0, &set, &status).await?;
        match failure {
            Some((_, error)) => Err(error),
            None if acted => Ok(Next::After(Duration::ZERO)),
            None => Ok(next.into()),
        }
    }
}

/// The pods of all sets of the same owner: where they are tells which nodes are fuller.
fn related(cache: &Cache, set: &Value) -> Vec<Arc<Value>> {
    let owner = crate::controllers::runtime::controller_of(set).map(|owner| text(owner, "uid").to_owned());
    match owner {
        Some(owner) => cache
            .owned(Res::ReplicaSets, &owner)
            .iter()
            .flat_map(|set| cache.owned(Res::Pods, set.uid()))
            .collect(),
        None => cache.owned(Res::Pods, set.uid()),
    }
}

async fn act(
    cx: &mut Cx<'_>,
    res: Res,
    set: &Value,
    pods: &[Arc<Value>],
    plan: Plan,
) -> Result<(), (&'static str, kube::Error)> {
    let owner = owner_reference(res.api_version(), res.kind(), set);
    for _ in 0..plan.create {
        let template = set.pointer("/spec/template").cloned().unwrap_or_default();
        let mut pod = from_template(&template, owner.clone());
        pod["metadata"]["generateName"] = Value::from(format!("{}-", set.name()));
        match cx.create(Res::Pods, set.namespace(), pod).await {
            Ok(created) => {
                cx.normal(
                    res,
                    set,
                    "SuccessfulCreate",
                    format!("Created pod: {}", created.name()),
                );
            }
            Err(error) => {
                cx.warning(
                    res,
                    set,
                    "FailedCreate",
                    format!("Error creating: {}", refusal(&error)),
                );
                return Err(("FailedCreate", error));
            }
        }
    }
    for name in plan.delete {
        let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
            continue;
        };
        match cx.delete(Res::Pods, pod, None).await {
            Ok(()) => cx.normal(res, set, "SuccessfulDelete", format!("Deleted pod: {name}")),
            Err(error) => {
                cx.warning(
                    res,
                    set,
                    "FailedDelete",
                    format!("Error deleting: {}", refusal(&error)),
                );
                return Err(("FailedDelete", error));
            }
        }
    }
    Ok(())
}
