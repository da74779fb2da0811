//! Pods that no kubelet will remove: those of nodes that are gone or out of service, deleted ones that never had a node, and
//! finished ones beyond a limit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, is_true, list, text};
use super::workloads::pods::sort_by_age;
use crate::runtime::is_over;

/// How long a pod's node may be unknown before its pods are removed (the real one's quarantine).
const QUARANTINE: Duration = Duration::from_secs(40);
/// The period of the removal of the others (the real one's).
const PERIOD: Duration = Duration::from_secs(20);
/// How many finished pods there may be (the real default).
const FINISHED_MAX: usize = 12_500;
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The controller. Its keys are nodes, pods, and the empty name for the limit.
pub(super) struct PodGarbage;

/// Whether pods that go on this node are not waited for.
fn is_out_of_service(node: &Value) -> bool {
    let tainted = list(node, "spec.taints")
        .iter()
        .any(|taint| text(taint, "key") == OUT_OF_SERVICE);
    tainted && !is_true(node, "Ready")
}

/// Whether no kubelet will remove a deleted pod: it has no node, or one that is out of service.
fn is_stuck(cache: &Cache, pod: &Value) -> bool {
    let node = text(pod, "spec.nodeName");
    let of = |node| {
        cache
            .get(Res::Nodes, "", node)
            .is_some_and(|node| is_out_of_service(node))
    };
    pod.is_terminating() && (node.is_empty() || of(node))
}

/// The pods that are removed of those that have ended: the oldest, and of all first those that were evicted.
fn surplus(mut finished: Vec<Arc<Value>>, at_most: usize) -> Vec<Arc<Value>> {
    let count = finished.len().saturating_sub(at_most);
    sort_by_age(&mut finished);
    let is_evicted =
        |pod: &Value| text(pod, "status.phase") == "Failed" && text(pod, "status.reason") == "Evicted";
    finished.sort_by_key(|pod| !is_evicted(pod));
    finished.truncate(count);
    finished
}

/// The status of a pod that has failed because its node is gone; none if it has ended by itself.
fn failed(pod: &Value, condition: Option<Value>) -> Option<Value> {
    if is_over(pod) {
        return None;
    }
    let mut status = json!({"phase": "Failed", "observedGeneration": pod.generation()});
    if let Some(mut condition) = condition {
        condition["observedGeneration"] = json!(pod.generation());
        let mut conditions = list(pod, "status.conditions").to_vec();
        match conditions
            .iter_mut()
            .find(|known| known["type"] == condition["type"])
        {
            // What has said so already has not changed since.
            Some(known) => {
                if known["status"] == condition["status"]
                    && let Some(since) = known.get("lastTransitionTime")
                {
                    condition["lastTransitionTime"] = since.clone();
                }
                *known = condition;
            }
            None => conditions.push(condition),
        }
        status["conditions"] = Value::from(conditions);
    }
    Some(status)
}

async fn remove(cx: &mut Cx<'_>, pod: &Value, condition: Option<Value>) -> Result<(), kube::Error> {
    if let Some(status) = failed(pod, condition) {
        match cx
            .patch(Res::Pods, pod, "/status", json!({"status": status}))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            other => other?,
        };
    }
    cx.delete_with(Res::Pods, pod, None, Some(0)).await
}

/// One that cannot be removed does not stop the others.
async fn remove_all(
    cx: &mut Cx<'_>,
    pods: &[Arc<Value>],
    condition: Option<&Value>,
) -> Result<(), kube::Error> {
    let mut result = Ok(());
    for pod in pods {
        let removed = remove(cx, pod, condition.cloned()).await;
        result = result.and(removed);
    }
    result
}

#[async_trait]
impl Controller for PodGarbage {
    fn name(&self) -> &'static str {
        "pod-garbage-collector"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Pods, Res::Nodes]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Nodes if cache.get(Res::Nodes, "", object.name()).is_none() => {
                vec![Key::new("", object.name())]
            }
            Res::Nodes if is_out_of_service(object) && !old.is_some_and(is_out_of_service) => cache
                .all(Res::Pods)
                .filter(|pod| text(pod, "spec.nodeName") == object.name() && pod.is_terminating())
                .map(|pod| Key::of(pod))
                .collect(),
            Res::Pods => {
                let node = text(object, "spec.nodeName");
                let placed = !node.is_empty() && old.is_none_or(|old| text(old, "spec.nodeName") != node);
                let mut keys = Vec::new();
                if placed && cache.get(Res::Nodes, "", node).is_none() {
                    keys.push(Key::new("", node));
                }
                if is_over(object) && old.is_none_or(|old| !is_over(old)) {
                    keys.push(Key::new("", ""));
                }
                if is_stuck(cache, object) && !old.is_some_and(|old| old.is_terminating()) {
                    keys.push(Key::of(object));
                }
                keys
            }
            _ => Vec::new(),
        }
    }

    fn delay(&self, _: Res, object: &Value, _: Option<&Value>) -> Duration {
        if object.is_terminating() || is_out_of_service(object) {
            PERIOD
        } else {
            QUARANTINE
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if !key.namespace.is_empty() {
            let pod = cx.cache.get(Res::Pods, &key.namespace, &key.name).cloned();
            if let Some(pod) = pod.filter(|pod| is_stuck(cx.cache, pod)) {
                remove(cx, &pod, None).await?;
            }
            return Ok(Next::Change);
        }
        if key.name.is_empty() {
            let finished: Vec<Arc<Value>> = cx
                .cache
                .all(Res::Pods)
                .filter(|pod| is_over(pod))
                .cloned()
                .collect();
            remove_all(cx, &surplus(finished, FINISHED_MAX), None).await?;
            return Ok(Next::Change);
        }
        if cx.cache.get(Res::Nodes, "", &key.name).is_some() {
            return Ok(Next::Change);
        }
        let pods: Vec<Arc<Value>> = cx
            .cache
            .all(Res::Pods)
            .filter(|pod| text(pod, "spec.nodeName") == key.name)
            .cloned()
            .collect();
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": cx.stamp(),
        });
        remove_all(cx, &pods, Some(&condition)).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taint: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": "n", "uid": "n"}, "spec": {"taints": [{"key": taint, "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    }

    #[test]
    fn who_is_stuck() {
        let pod = |node: &str, going: bool| {
            let mut pod = json!({"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": node}});
            if going {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            pod
        };
        let nodes = [
            None,
            Some(node(OUT_OF_SERVICE, "False")),
            Some(node(OUT_OF_SERVICE, "Unknown")),
            Some(node(OUT_OF_SERVICE, "True")),
            Some(node("other", "False")),
        ];
        for (name, going, expected) in [
            ("n", true, [false, true, true, false, false]),
            ("n", false, [false; 5]),
            ("", true, [true; 5]),
            ("", false, [false; 5]),
            ("other", true, [false; 5]),
        ] {
            for (node, expected) in nodes.iter().zip(expected) {
                let mut cache = Cache::default();
                if let Some(node) = node {
                    cache.put(Res::Nodes, node.clone());
                }
                assert_eq!(
                    is_stuck(&cache, &pod(name, going)),
                    expected,
                    "{name} {going} {node:?}"
                );
            }
        }
    }

    #[test]
    fn which_finished_pods_go_first() {
        let pod = |name: &str, created: u8, phase: &str, reason: &str| {
            Arc::new(json!({
                "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:0{created}Z")},
                "status": {"phase": phase, "reason": reason},
            }))
        };
        let pods = [
            pod("new", 9, "Succeeded", ""),
            pod("old", 1, "Failed", "Error"),
            pod("evicted-late", 8, "Failed", "Evicted"),
            pod("b", 5, "Failed", ""),
            pod("a", 5, "Succeeded", "Evicted"),
            pod("evicted", 3, "Failed", "Evicted"),
        ];
        for (at_most, expected) in [
            (9, ""),
            (6, ""),
            (5, "evicted"),
            (4, "evicted evicted-late"),
            (3, "evicted evicted-late old"),
            (1, "evicted evicted-late old a b"),
            (0, "evicted evicted-late old a b new"),
        ] {
            let gone: Vec<String> = surplus(pods.to_vec(), at_most)
                .iter()
                .map(|pod| pod.name().to_owned())
                .collect();
            assert_eq!(gone.join(" "), expected, "{at_most}");
        }
    }

    #[test]
    fn what_a_failed_pod_shows() {
        let condition = |reason: &str, status: &str, time: &str| json!({"type": "DisruptionTarget", "status": status, "reason": reason, "lastTransitionTime": time});
        let target = condition("DeletionByPodGC", "True", "now");
        let told = |since: &str| {
            let mut told = condition("DeletionByPodGC", "True", since);
            told["observedGeneration"] = json!(2);
            told
        };
        let ready = json!({"type": "Ready", "status": "True"});
        let before = |status: &str| condition("EvictionByEvictionAPI", status, "before");
        for (phase, conditions, condition, expected) in [
            (
                "Running",
                json!([ready]),
                None,
                json!({"phase": "Failed", "observedGeneration": 2}),
            ),
            (
                "Pending",
                json!([ready]),
                Some(&target),
                json!({"phase": "Failed", "observedGeneration": 2, "conditions": [ready, told("now")]}),
            ),
            (
                "Unknown",
                json!([before("True"), ready]),
                Some(&target),
                json!({"phase": "Failed", "observedGeneration": 2, "conditions": [told("before"), ready]}),
            ),
            (
                "Unknown",
                json!([before("False"), ready]),
                Some(&target),
                json!({"phase": "Failed", "observedGeneration": 2, "conditions": [told("now"), ready]}),
            ),
            ("Succeeded", json!([ready]), Some(&target), Value::Null),
            ("Failed", json!([]), Some(&target), Value::Null),
            ("Failed", json!([]), None, Value::Null),
        ] {
            let pod =
                json!({"metadata": {"generation": 2}, "status": {"phase": phase, "conditions": conditions}});
            let found = failed(&pod, condition.cloned()).unwrap_or_default();
            assert_eq!(found, expected, "{phase}");
        }
    }
}
