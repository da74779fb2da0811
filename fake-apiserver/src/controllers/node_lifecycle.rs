//! Nodes that are not ready: their taints, and the eviction of pods that do not tolerate them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use client_kit::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Map, Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, list, text, time, until};
use super::workloads::pods::is_over;
use crate::meta::{ObjectMeta as _, at, string_map};
use crate::nodes::tolerates;
use crate::server::rfc3339;

/// How long a node may be silent before its conditions become unknown (the real default).
const GRACE: Duration = Duration::from_secs(50);
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that taint a node while they hold, and the taint.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// How often the real one looks at nodes: so long a new one may wait until it is said to be known.
const MONITOR: Duration = Duration::from_secs(5);
/// Labels that a node is to have for the sake of older clients, and where their values are.
const OLD_LABELS: [(&str, &str); 2] = [
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
];

/// The controller.
#[derive(Default)]
pub(super) struct NodeLifecycle {
    /// The nodes that were seen: uid, and until when what is new about them is not told.
    known: BTreeMap<String, (String, Option<Timestamp>)>,
    /// The uids of nodes that were not ready when they were seen first.
    unready: Mutex<BTreeSet<String>>,
}

/// Says something about a node. Its events are in the default namespace, and name no version of it.
fn tell(cx: &Cx<'_>, name: &str, uid: &str, reason: &str, message: String) {
    let node = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    cx.recorder.event(&node, EventType::Normal, reason, message);
}

fn ready(node: &Value) -> &str {
    condition(node, "Ready").map_or("", |condition| text(condition, "status"))
}

/// The taints that a node's conditions ask for: key and effect.
fn asked(node: &Value) -> Vec<(&'static str, &'static str)> {
    let mut out = Vec::new();
    let key = match ready(node) {
        "False" => Some(NOT_READY),
        "Unknown" => Some(UNREACHABLE),
        _ => None,
    };
    for (kind, taint) in PRESSURES {
        if condition(node, kind).is_some_and(|condition| text(condition, "status") == "True") {
            out.push((taint, "NoSchedule"));
        }
    }
    if at(node, "spec.unschedulable").and_then(Value::as_bool) == Some(true) {
        out.push((UNSCHEDULABLE, "NoSchedule"));
    }
    if let Some(key) = key {
        out.push((key, "NoSchedule"));
        out.push((key, "NoExecute"));
    }
    out
}

/// The taints that a node is to have; none if it has them.
fn taints(node: &Value, stamp: &str) -> Option<Vec<Value>> {
    let present = list(node, "spec.taints");
    let asked = asked(node);
    let own = |taint: &Value| {
        let key = text(taint, "key");
        key == NOT_READY
            || key == UNREACHABLE
            || key == UNSCHEDULABLE
            || PRESSURES.iter().any(|(_, name)| *name == key)
    };
    let is = |taint: &Value, (key, effect): &(&str, &str)| {
        text(taint, "key") == *key && text(taint, "effect") == *effect
    };
    let mut out: Vec<Value> = present
        .iter()
        .filter(|taint| !own(taint) || asked.iter().any(|wanted| is(taint, wanted)))
        .cloned()
        .collect();
    for wanted in &asked {
        if !out.iter().any(|taint| is(taint, wanted)) {
            out.push(json!({"key": wanted.0, "effect": wanted.1, "timeAdded": stamp}));
        }
    }
    (out.as_slice() != present).then_some(out)
}

/// When a pod that does not tolerate the node's taints for ever has to go: none if it may stay.
fn leaves_at(node: &Value, pod: &Value) -> Option<jiff::Timestamp> {
    let mut at: Option<jiff::Timestamp> = None;
    for taint in list(node, "spec.taints")
        .iter()
        .filter(|taint| text(taint, "effect") == "NoExecute")
    {
        let since = time(taint, "timeAdded").unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        // The first that is for it counts, however long the others would stay.
        let toleration = list(pod, "spec.tolerations")
            .iter()
            .find(|toleration| tolerates(toleration, taint));
        let leaves = match toleration {
            None => Some(since),
            Some(toleration) => toleration
                .get("tolerationSeconds")
                .and_then(Value::as_i64)
                .and_then(|seconds| {
                    since
                        .saturating_add(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
                        .ok()
                }),
        };
        at = [at, leaves].into_iter().flatten().min();
    }
    at
}

#[async_trait]
impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Nodes, Res::Pods, Res::Leases]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Nodes => {
                if old.is_none() && ready(object) != "True" {
                    self.unready().insert(object.uid().to_owned());
                }
                vec![Key::of(object)]
            }
            Res::Pods => {
                let node = text(object, "spec.nodeName");
                let moved = old.is_none_or(|old| text(old, "spec.nodeName") != node);
                let tainted = cache
                    .get(Res::Nodes, "", node)
                    .is_some_and(|node| !list(node, "spec.taints").is_empty());
                if moved && tainted {
                    vec![Key::new("", node)]
                } else {
                    Vec::new()
                }
            }
            _ if object.namespace() == "kube-node-lease" => vec![Key::new("", object.name())],
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(mut node) = cx.cache.get(Res::Nodes, "", &key.name).cloned() else {
            let gone = self.known.remove(&key.name);
            if let Some((uid, _)) = &gone {
                self.unready().remove(uid);
            }
            if let Some((uid, None)) = gone {
                let text = format!("Node {0} event: Removing Node {0} from Controller", key.name);
                tell(cx, &key.name, &uid, "RemovingNode", text);
            }
            return Ok(Next::Change);
        };
        let mut next = self.greet(cx, &node);
        if let Some(labels) = old_labels(&node) {
            let patch = json!({"metadata": {"labels": labels}});
            node = std::sync::Arc::new(cx.patch(Res::Nodes, &node, "", patch).await?);
        }
        if let Some((silent, left)) = silence(cx, &node) {
            if silent {
                node = std::sync::Arc::new(make_unknown(cx, &node).await?);
            } else {
                next = [next, Some(left)].into_iter().flatten().min();
            }
        }
        if let Some(taints) = taints(&node, &cx.stamp()) {
            let before = ready(&node).to_owned();
            node = std::sync::Arc::new(
                cx.patch(Res::Nodes, &node, "", json!({"spec": {"taints": taints}}))
                    .await?,
            );
            if before == "False" || before == "Unknown" {
                let text = format!("Node {} status is now: NodeNotReady", node.name());
                cx.normal(Res::Nodes, &node, "NodeNotReady", text);
                pods_not_ready(cx, &node).await?;
            }
        }
        let evict = evict(cx, &node).await?;
        Ok([next, evict].into_iter().flatten().min().into())
    }
}

impl NodeLifecycle {
    fn unready(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.unready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a node is known, some time after it was seen first; gives how long that still takes. Of one that is ready when
    /// it is seen first, as simulated ones are, nothing is said.
    fn greet(&mut self, cx: &Cx<'_>, node: &Value) -> Option<Duration> {
        let now = cx.now();
        let was_ready = !self.unready().contains(node.uid());
        let (_, due) = self.known.entry(node.name().to_owned()).or_insert_with(|| {
            let due = now.saturating_add(MONITOR).ok().filter(|_| !was_ready);
            (node.uid().to_owned(), due)
        });
        let left = until((*due)?, now);
        if left.is_none() {
            *due = None;
            let text = format!("Node {0} event: Registered Node {0} in Controller", node.name());
            tell(cx, node.name(), node.uid(), "RegisteredNode", text);
        }
        left
    }
}

/// The labels for older clients that a node lacks.
fn old_labels(node: &Value) -> Option<Value> {
    let labels = string_map(node, "labels");
    let missing: Map<String, Value> = OLD_LABELS
        .iter()
        .filter_map(|(old, new)| {
            let value = labels.get(*new)?;
            (labels.get(*old) != Some(value)).then(|| ((*old).to_owned(), value.clone()))
        })
        .collect();
    (!missing.is_empty()).then_some(Value::Object(missing))
}

/// Whether a node that has a lease has stopped to renew it, and otherwise when to look again.
fn silence(cx: &Cx<'_>, node: &Value) -> Option<(bool, Duration)> {
    let lease = cx.cache.get(Res::Leases, "kube-node-lease", node.name())?;
    if ready(node) == "Unknown" {
        return None;
    }
    let at = time(lease, "spec.renewTime")?.saturating_add(GRACE).ok()?;
    Some(match until(at, cx.now()) {
        Some(left) => (false, left),
        None => (true, Duration::ZERO),
    })
}

async fn make_unknown(cx: &mut Cx<'_>, node: &Value) -> Result<Value, kube::Error> {
    let stamp = cx.stamp();
    let conditions: Vec<Value> = list(node, "status.conditions")
        .iter()
        .map(|condition| {
            let mut condition = condition.clone();
            if matches!(
                text(&condition, "type"),
                "Ready" | "MemoryPressure" | "DiskPressure" | "PIDPressure"
            ) {
                condition["status"] = json!("Unknown");
                condition["reason"] = json!("NodeStatusUnknown");
                condition["message"] = json!("Kubelet stopped posting node status.");
                condition["lastTransitionTime"] = json!(stamp);
            }
            condition
        })
        .collect();
    cx.patch(
        Res::Nodes,
        node,
        "/status",
        json!({"status": {"conditions": conditions}}),
    )
    .await
}

/// Pods of a node that is not ready are not ready either.
async fn pods_not_ready(cx: &mut Cx<'_>, node: &Value) -> Result<(), kube::Error> {
    let pods = on_node(cx.cache, node.name());
    let stamp = cx.stamp();
    for pod in pods {
        let mut conditions = list(&pod, "status.conditions").to_vec();
        let Some(ready) = conditions
            .iter_mut()
            .find(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True")
        else {
            continue;
        };
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(stamp);
        cx.patch(
            Res::Pods,
            &pod,
            "/status",
            json!({"status": {"conditions": conditions}}),
        )
        .await?;
        cx.warning(Res::Pods, &pod, "NodeNotReady", "Node is not ready".to_owned());
    }
    Ok(())
}

fn on_node(cache: &Cache, node: &str) -> Vec<std::sync::Arc<Value>> {
    cache
        .all(Res::Pods)
        .filter(|pod| text(pod, "spec.nodeName") == node)
        .cloned()
        .collect()
}

/// Deletes the pods whose time on the node is over; gives when the next one's is.
async fn evict(cx: &mut Cx<'_>, node: &Value) -> Result<Option<Duration>, kube::Error> {
    if !list(node, "spec.taints")
        .iter()
        .any(|taint| text(taint, "effect") == "NoExecute")
    {
        return Ok(None);
    }
    let now = cx.now();
    let mut next: Option<Duration> = None;
    let mut due = BTreeMap::new();
    for pod in on_node(cx.cache, node.name()) {
        if pod.is_terminating() || is_over(&pod) {
            continue;
        }
        match leaves_at(node, &pod).map(|at| until(at, now)) {
            Some(Some(left)) => next = Some(next.map_or(left, |next| next.min(left))),
            Some(None) => {
                due.insert((pod.namespace().to_owned(), pod.name().to_owned()), pod);
            }
            None => {}
        }
    }
    for ((namespace, name), pod) in due {
        let reference = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(name.clone()),
            namespace: Some(namespace.clone()),
            ..ObjectReference::default()
        };
        let text = format!("Marking for deletion Pod {namespace}/{name}");
        cx.recorder.named("taint-eviction-controller").event(
            &reference,
            EventType::Normal,
            "TaintManagerEviction",
            text,
        );
        let mut target = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": rfc3339(cx.clock.now_seconds()),
        });
        if pod.generation() > 0 {
            target["observedGeneration"] = json!(pod.generation());
        }
        let mut conditions = list(&pod, "status.conditions").to_vec();
        conditions.push(target);
        cx.patch(
            Res::Pods,
            &pod,
            "/status",
            json!({"status": {"conditions": conditions}}),
        )
        .await?;
        cx.delete(Res::Pods, &pod, None).await?;
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn node(status: &str, spec: Value) -> Value {
        json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    #[rstest]
    #[case(node("True", json!({})), None)]
    #[case(node("False", json!({})), Some("not-ready:NoSchedule not-ready:NoExecute"))]
    #[case(node("Unknown", json!({})), Some("unreachable:NoSchedule unreachable:NoExecute"))]
    #[case(node("True", json!({"unschedulable": true})), Some("unschedulable:NoSchedule"))]
    #[case(node("True", json!({"taints": [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]})), Some(""))]
    #[case(node("True", json!({"taints": [{"key": "mine", "effect": "NoSchedule"}]})), None)]
    #[case(
        node("Unknown", json!({"taints": [{"key": "mine", "effect": "NoExecute"}, {"key": NOT_READY, "effect": "NoExecute"}]})),
        Some("mine:NoExecute unreachable:NoSchedule unreachable:NoExecute")
    )]
    fn taints_of_conditions(#[case] node: Value, #[case] expected: Option<&str>) {
        let got = shown(&node);
        assert_eq!(got.as_deref(), expected);
    }

    fn shown(node: &Value) -> Option<String> {
        taints(node, "now").map(|taints| {
            let words: Vec<String> = taints
                .iter()
                .map(|taint| {
                    format!(
                        "{}:{}",
                        text(taint, "key").trim_start_matches("node.kubernetes.io/"),
                        text(taint, "effect")
                    )
                })
                .collect();
            words.join(" ")
        })
    }

    /// Conditions as `Type=Status`, in the order of the node.
    #[rstest]
    #[case("Ready=True MemoryPressure=True", Some("memory-pressure:NoSchedule"))]
    #[case(
        "DiskPressure=True PIDPressure=True Ready=True",
        Some("disk-pressure:NoSchedule pid-pressure:NoSchedule")
    )]
    #[case("Ready=True NetworkUnavailable=True", Some("network-unavailable:NoSchedule"))]
    #[case("Ready=True MemoryPressure=False DiskPressure=False", None)]
    #[case("Ready=True MemoryPressure=Unknown", None)]
    #[case(
        "MemoryPressure=True Ready=Unknown",
        Some("memory-pressure:NoSchedule unreachable:NoSchedule unreachable:NoExecute")
    )]
    #[case("MemoryPressure=True", Some("memory-pressure:NoSchedule"))]
    #[case("", None)]
    fn taints_of_pressures(#[case] conditions: &str, #[case] expected: Option<&str>) {
        let conditions: Vec<Value> = conditions
            .split_whitespace()
            .filter_map(|short| short.split_once('='))
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let node = json!({"metadata": {"name": "n"}, "spec": {}, "status": {"conditions": conditions}});
        assert_eq!(shown(&node).as_deref(), expected);
    }

    #[rstest]
    #[case(json!([]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}]), None)]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]), Some(400))]
    #[case(json!([{"operator": "Exists"}]), None)]
    #[case(json!([{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Equal", "value": "v"}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 300}]), None)]
    #[case(json!([{"operator": "Exists", "tolerationSeconds": 300}, {"key": NOT_READY, "operator": "Exists"}]), Some(400))]
    #[case(
        json!([{"operator": "Exists", "tolerationSeconds": 300}, {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 5}]), Some(400)
    )]
    fn when_pods_leave(#[case] tolerations: Value, #[case] expected: Option<i64>) {
        let node = json!({"spec": {"taints": [{"key": NOT_READY, "effect": "NoExecute", "timeAdded": "1970-01-01T00:01:40Z"}]}});
        let pod = json!({"spec": {"tolerations": tolerations}});
        assert_eq!(leaves_at(&node, &pod).map(jiff::Timestamp::as_second), expected);
    }
}
