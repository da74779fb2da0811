//! A small scheduler: each pod goes to the node with the fewest pods that can take it.

use std::collections::{BTreeMap, BTreeSet};

use client_kit::{JsonChange, SharedClock, watch_json};
use futures::{StreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};

use crate::meta::{ObjectMeta, at, string_map};

/// The scheduler's name in pods and events.
const NAME: &str = "default-scheduler";

/// Assigns pods to nodes.
pub struct Scheduler {
    client: Client,
    clock: SharedClock,
    nodes: BTreeMap<String, Value>,
    /// Which pods are on which node, by uid.
    placed: BTreeMap<String, BTreeSet<String>>,
    node_of: BTreeMap<String, String>,
    /// Pods without a node, by when they came.
    waiting: Vec<Value>,
    stamp: i128,
    /// Where pods of a name go if they can.
    wanted: BTreeMap<String, String>,
}

enum Seen {
    Node(Value),
    NodeGone(String),
    Pod(Value),
    PodGone(String),
}

impl Scheduler {
    /// A scheduler. It runs when [`Scheduler::run`] is awaited.
    #[must_use]
    pub fn new(client: Client, clock: SharedClock) -> Self {
        Self {
            client,
            clock,
            nodes: BTreeMap::new(),
            placed: BTreeMap::new(),
            node_of: BTreeMap::new(),
            waiting: Vec::new(),
            stamp: 0,
            wanted: BTreeMap::new(),
        }
    }

    /// Pods of these names go to these nodes, if they can: for a run under the conditions of another.
    #[must_use]
    pub fn with_placements(mut self, wanted: BTreeMap<String, String>) -> Self {
        self.wanted = wanted;
        self
    }

    /// Watches nodes and pods and assigns what has no node, until dropped.
    pub async fn run(mut self) {
        let nodes = watch_json(self.client.clone(), "/api/v1/nodes", "", true).filter_map(|change| async {
            match change {
                JsonChange::Present(node) => Some(Seen::Node(node)),
                JsonChange::Gone(node) => Some(Seen::NodeGone(node.name().to_owned())),
                JsonChange::Synced => None,
            }
        });
        let pods = watch_json(self.client.clone(), "/api/v1/pods", "", false).filter_map(|change| async {
            match change {
                JsonChange::Present(pod) => Some(Seen::Pod(pod)),
                JsonChange::Gone(pod) => Some(Seen::PodGone(pod.uid().to_owned())),
                JsonChange::Synced => None,
            }
        });
        let mut seen = stream::select(nodes.boxed(), pods.boxed());
        while let Some(event) = seen.next().await {
            self.observe(event);
            self.schedule().await;
        }
    }

    fn observe(&mut self, seen: Seen) {
        match seen {
            Seen::Node(node) => {
                self.nodes.insert(node.name().to_owned(), node);
            }
            Seen::NodeGone(name) => {
                self.nodes.remove(&name);
            }
            Seen::Pod(pod) => {
                let uid = pod.uid().to_owned();
                let node = at(&pod, "spec.nodeName")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                self.waiting.retain(|waiting| waiting.uid() != uid);
                let over = matches!(
                    at(&pod, "status.phase").and_then(Value::as_str),
                    Some("Succeeded" | "Failed")
                );
                if over {
                    self.forget(&uid);
                } else if !node.is_empty() {
                    self.place(&uid, &node);
                } else if is_ours(&pod) && !pod.is_terminating() && !self.node_of.contains_key(&uid) {
                    self.waiting.push(pod);
                }
            }
            Seen::PodGone(uid) => {
                self.waiting.retain(|waiting| waiting.uid() != uid);
                self.forget(&uid);
            }
        }
    }

    fn place(&mut self, uid: &str, node: &str) {
        self.node_of.insert(uid.to_owned(), node.to_owned());
        self.placed
            .entry(node.to_owned())
            .or_default()
            .insert(uid.to_owned());
    }

    fn forget(&mut self, uid: &str) {
        if let Some(node) = self.node_of.remove(uid)
            && let Some(pods) = self.placed.get_mut(&node)
        {
            pods.remove(uid);
        }
    }

    /// The node with the fewest pods of those that can take the pod; the first by name among equals.
    fn choose(&self, pod: &Value) -> Option<String> {
        let load = |name: &str| self.placed.get(name).map_or(0, BTreeSet::len);
        if let Some(wanted) = self.wanted.get(pod.name())
            && self
                .nodes
                .get(wanted)
                .is_some_and(|node| fits(pod, node, load(wanted)))
        {
            return Some(wanted.clone());
        }
        self.nodes
            .iter()
            .filter(|(name, node)| fits(pod, node, load(name)))
            .min_by_key(|(name, _)| (load(name), (*name).clone()))
            .map(|(name, _)| name.clone())
    }

    async fn schedule(&mut self) {
        for pod in std::mem::take(&mut self.waiting) {
            let Some(node) = self.choose(&pod) else {
                self.waiting.push(pod);
                continue;
            };
            // Counted at once, so that the next pod sees it; taken back if the binding fails.
            self.place(pod.uid(), &node);
            if let Err(error) = self.bind(&pod, &node).await {
                tracing::debug!(%error, pod = %pod.name(), "bind a pod");
                self.forget(pod.uid());
                continue;
            }
            self.record(&pod, &node).await;
        }
    }

    async fn bind(&self, pod: &Value, node: &str) -> Result<(), kube::Error> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name(), "namespace": pod.namespace(), "uid": pod.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/binding",
            pod.namespace(),
            pod.name()
        );
        self.post(&path, &binding).await
    }

    /// Writes the event `Scheduled`, in the form of the newer events API.
    async fn record(&mut self, pod: &Value, node: &str) {
        let now = self.clock.now();
        self.stamp = now.as_nanosecond().max(self.stamp + 1);
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{}.{:x}", pod.name(), self.stamp), "namespace": pod.namespace()},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "namespace": pod.namespace(),
                "uid": pod.uid(), "resourceVersion": pod.resource_version(),
            },
            "type": "Normal", "reason": "Scheduled", "action": "Binding",
            "message": format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name()),
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "firstTimestamp": null, "lastTimestamp": null, "source": {},
            "reportingComponent": NAME, "reportingInstance": format!("{NAME}-0"),
        });
        let path = format!("/api/v1/namespaces/{}/events", pod.namespace());
        if let Err(error) = self.post(&path, &event).await {
            tracing::debug!(%error, "write an event");
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), kube::Error> {
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::USER_AGENT, "kube-scheduler")
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.client.request::<Value>(request).await.map(|_| ())
    }
}

fn is_ours(pod: &Value) -> bool {
    let scheduler = at(pod, "spec.schedulerName")
        .and_then(Value::as_str)
        .unwrap_or(NAME);
    let gated = at(pod, "spec.schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty());
    scheduler == NAME && !gated
}

/// Whether a node with `pods` pods can take one more: room, labels, taints.
fn fits(pod: &Value, node: &Value, pods: usize) -> bool {
    let room = at(node, "status.allocatable.pods")
        .and_then(Value::as_str)
        .and_then(|n| n.parse().ok())
        .unwrap_or(110);
    let cordoned = at(node, "spec.unschedulable").and_then(Value::as_bool) == Some(true);
    let labels = string_map(node, "labels");
    let selected = at(pod, "spec.nodeSelector")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let taints = at(node, "spec.taints")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let tolerations = at(pod, "spec.tolerations")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let repelled = taints
        .iter()
        .filter(|taint| taint.get("effect").and_then(Value::as_str) != Some("PreferNoSchedule"))
        .any(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)));
    pods < room && !cordoned && selected && !repelled
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value, field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (effect, key) = (text(toleration, "effect"), text(toleration, "key"));
    let exists = text(toleration, "operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "effect"))
        && ((key.is_empty() && exists) || key == text(taint, "key"))
        && (exists || text(toleration, "value") == text(taint, "value"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), json!({}), true)]
    #[case(json!({"nodeSelector": {"zone": "a"}}), json!({}), false)]
    #[case(json!({"nodeSelector": {"zone": "b"}}), json!({}), true)]
    #[case(json!({}), json!({"unschedulable": true}), false)]
    #[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), false)]
    #[case(json!({}), json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), true)]
    #[case(
        json!({"tolerations": [{"key": "k", "operator": "Exists"}]}),
        json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}),
        true
    )]
    fn where_pods_fit(#[case] pod: Value, #[case] node: Value, #[case] expected: bool) {
        let node = json!({"metadata": {"labels": {"zone": "b"}}, "spec": node, "status": {"allocatable": {"pods": "2"}}});
        assert_eq!(fits(&json!({"spec": pod}), &node, 1), expected);
        assert!(!fits(&json!({"spec": pod}), &node, 2));
    }
}
