//! The status of disruption budgets: how many pods may be evicted.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, controller_of, list, number, text, time, until};
use super::workloads::pods::{is_active, is_ready, scaled};
use crate::meta::{ObjectMeta as _, at, string_map};
use crate::selector::matches_selector;

/// How long an eviction that was allowed is waited for (the real one's).
const DISRUPTION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// The controller.
pub(super) struct Disruption;

/// How many pods there should be: the sizes of the workloads that control them.
fn expected(cache: &Cache, pods: &[Arc<Value>]) -> i64 {
    let mut seen: Vec<String> = Vec::new();
    let mut total = 0;
    for pod in pods {
        let Some(owner) = controller_of(pod) else { continue };
        let (res, kind) = match text(owner, "kind") {
            "ReplicaSet" => (Res::ReplicaSets, "ReplicaSet"),
            "StatefulSet" => (Res::StatefulSets, "StatefulSet"),
            _ => continue,
        };
        let Some(mut object) = cache.get(res, pod.namespace(), text(owner, "name")).cloned() else {
            continue;
        };
        if kind == "ReplicaSet"
            && let Some(owner) = controller_of(&object)
            && let Some(deployment) = cache.get(Res::Deployments, pod.namespace(), text(owner, "name"))
        {
            object = Arc::clone(deployment);
        }
        if !seen.iter().any(|uid| uid == object.uid()) {
            seen.push(object.uid().to_owned());
            total += number(&object, "spec.replicas", 1);
        }
    }
    total
}

/// The status of a budget over its pods.
fn status(
    budget: &Value,
    pods: &[Arc<Value>],
    expected_by_owners: i64,
    now: Timestamp,
    stamp: &str,
) -> Value {
    let count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let spec = |field: &str| at(budget, &format!("spec.{field}"));
    let (expected, desired) = match (spec("maxUnavailable"), spec("minAvailable")) {
        (Some(max), _) => {
            let expected = expected_by_owners;
            (expected, (expected - scaled(Some(max), expected, true, 0)).max(0))
        }
        (None, Some(min @ Value::String(_))) => {
            (expected_by_owners, scaled(Some(min), expected_by_owners, true, 0))
        }
        (None, min) => (count, scaled(min, count, true, 1)),
    };
    // Evictions that were allowed and have not been seen yet still count.
    let mut disrupted = serde_json::Map::new();
    for (name, since) in at(budget, "status.disruptedPods")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let fresh = since
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
            .and_then(|at| at.saturating_add(DISRUPTION_TIMEOUT).ok())
            .is_some_and(|at| until(at, now).is_some());
        if fresh && pods.iter().any(|pod| pod.name() == name && !pod.is_terminating()) {
            disrupted.insert(name.clone(), since.clone());
        }
    }
    let healthy = pods
        .iter()
        .filter(|pod| is_ready(pod) && !pod.is_terminating() && !disrupted.contains_key(pod.name()))
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let (met, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let old = list(budget, "status.conditions")
        .iter()
        .find(|condition| text(condition, "type") == "DisruptionAllowed");
    let since = old
        .filter(|old| text(old, "status") == met)
        .map_or(stamp, |old| text(old, "lastTransitionTime"));
    let mut status = json!({
        "observedGeneration": budget.generation(), "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected, "disruptionsAllowed": allowed,
        "conditions": [{
            "type": "DisruptionAllowed", "status": met, "reason": reason, "message": "",
            "observedGeneration": budget.generation(), "lastTransitionTime": since,
        }],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status
}

#[async_trait]
impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "controllermanager"
    }

    fn watches(&self) -> &'static [Res] {
        &[
            Res::Budgets,
            Res::Pods,
            Res::ReplicaSets,
            Res::Deployments,
            Res::StatefulSets,
        ]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Budgets => vec![Key::of(object)],
            Res::Pods => cache
                .in_namespace(Res::Budgets, object.namespace())
                .filter(|budget| {
                    let matches = |pod: &Value| {
                        matches_selector(budget.pointer("/spec/selector"), string_map(pod, "labels"))
                    };
                    matches(object) || old.is_some_and(matches)
                })
                .map(|budget| Key::of(budget))
                .collect(),
            // The sizes of workloads matter only where there are budgets.
            _ if old.is_some_and(|old| old.pointer("/spec/replicas") == object.pointer("/spec/replicas")) => {
                Vec::new()
            }
            _ => cache
                .in_namespace(Res::Budgets, object.namespace())
                .map(|budget| Key::of(budget))
                .collect(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(budget) = cx.cache.get(Res::Budgets, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let pods: Vec<Arc<Value>> = cx
            .cache
            .in_namespace(Res::Pods, &key.namespace)
            .filter(|pod| is_active(pod) || pod.is_terminating())
            .filter(|pod| matches_selector(budget.pointer("/spec/selector"), string_map(pod, "labels")))
            .cloned()
            .collect();
        if pods.is_empty()
            && time(&budget, "status.conditions").is_none()
            && budget.pointer("/status/observedGeneration").is_none()
        {
            cx.normal(
                Res::Budgets,
                &budget,
                "NoPods",
                "No matching pods found".to_owned(),
            );
        }
        let expected = expected(cx.cache, &pods);
        let status = status(&budget, &pods, expected, cx.now(), &cx.stamp());
        cx.set_status(Res::Budgets, &budget, &status).await?;
        let waits = status.get("disruptedPods").is_some();
        Ok(if waits {
            Next::After(DISRUPTION_TIMEOUT)
        } else {
            Next::Change
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"minAvailable": 1}), 2, 1, (2, 1, 1, 0))]
    #[case(json!({"minAvailable": 1}), 2, 2, (2, 1, 2, 1))]
    #[case(json!({"minAvailable": "50%"}), 4, 4, (4, 2, 4, 2))]
    #[case(json!({"minAvailable": "34%"}), 4, 3, (4, 2, 3, 1))]
    #[case(json!({"maxUnavailable": 1}), 4, 4, (4, 3, 4, 1))]
    #[case(json!({"maxUnavailable": "30%"}), 4, 4, (4, 2, 4, 2))]
    #[case(json!({"maxUnavailable": 0}), 4, 4, (4, 4, 4, 0))]
    #[case(json!({"minAvailable": 0}), 0, 0, (0, 0, 0, 0))]
    fn statuses(
        #[case] spec: Value,
        #[case] total: usize,
        #[case] ready: usize,
        #[case] expected: (i64, i64, i64, i64),
    ) {
        let pods: Vec<Arc<Value>> = (0..total)
            .map(|n| {
                let status = if n < ready { "True" } else { "False" };
                Arc::new(json!({"metadata": {"name": format!("p{n}")}, "status": {"conditions": [{"type": "Ready", "status": status}]}}))
            })
            .collect();
        let owners = i64::try_from(total).unwrap();
        let status = status(
            &json!({"spec": spec}),
            &pods,
            owners,
            Timestamp::UNIX_EPOCH,
            "now",
        );
        let of = |field: &str| number(&status, field, -1);
        assert_eq!(
            (
                of("expectedPods"),
                of("desiredHealthy"),
                of("currentHealthy"),
                of("disruptionsAllowed")
            ),
            expected
        );
    }
}
