//! What the scheduler knows: nodes and what is on them, volumes and claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::meta::{ObjectMeta as _, at, string_map};
pub(super) use crate::nodes::resources::Amounts;
use crate::nodes::resources::{Count, add, amounts, requests};

/// A list in an object; empty if there is none.
pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A text in an object; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// Host ports: protocol, address, number.
pub(super) type HostPort = (String, String, i64);

/// The ports of its node that a pod wants: of its containers and sidecars.
pub(super) fn host_ports(pod: &Value) -> Vec<HostPort> {
    let network = at(pod, "spec.hostNetwork").and_then(Value::as_bool) == Some(true);
    let mut out = Vec::new();
    let sidecars = list(pod, "spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always");
    for container in list(pod, "spec.containers").iter().chain(sidecars) {
        for port in list(container, "ports") {
            let number = port
                .get("hostPort")
                .and_then(Value::as_i64)
                .filter(|number| *number > 0);
            let number = number.or_else(|| {
                port.get("containerPort")
                    .and_then(Value::as_i64)
                    .filter(|_| network)
            });
            let Some(number) = number else { continue };
            let word = |field: &str, default: &str| match text(port, field) {
                "" => default.to_owned(),
                word => word.to_owned(),
            };
            out.push((word("protocol", "TCP"), word("hostIP", "0.0.0.0"), number));
        }
    }
    out
}

/// A pod as the scheduler looks at it.
#[derive(Debug)]
pub(super) struct PodInfo {
    pub object: Arc<Value>,
    pub requests: Amounts,
    pub ports: Vec<HostPort>,
    pub priority: i64,
}

impl PodInfo {
    pub(super) fn new(object: impl Into<Arc<Value>>) -> Self {
        let object = object.into();
        Self {
            requests: requests(&object, Count::Most),
            ports: host_ports(&object),
            priority: at(&object, "spec.priority")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            object,
        }
    }

    /// A pod that has its node: only what other pods ask about is kept of it.
    pub(super) fn placed(pod: &Value) -> Self {
        let full = Self::new(Value::Null);
        let mut object =
            json!({"metadata": {}, "spec": {}, "status": {"startTime": at(pod, "status.startTime")}});
        for field in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "labels",
            "deletionTimestamp",
        ] {
            if let Some(value) = pod.metadata().and_then(|meta| meta.get(field)) {
                object["metadata"][field] = value.clone();
            }
        }
        if let Some(affinity) = at(pod, "spec.affinity").filter(|value| value.is_object()) {
            object["spec"]["affinity"] = affinity.clone();
        }
        Self {
            object: Arc::new(object),
            requests: requests(pod, Count::Most),
            ports: host_ports(pod),
            priority: at(pod, "spec.priority")
                .and_then(Value::as_i64)
                .unwrap_or(full.priority),
        }
    }

    pub(super) fn labels(&self) -> &Map<String, Value> {
        string_map(&self.object, "labels")
    }
}

/// A node and the pods on it.
#[derive(Debug, Clone)]
pub(super) struct NodeInfo {
    pub object: Arc<Value>,
    pub allocatable: Amounts,
    pub requested: Amounts,
    pub pods: BTreeMap<String, Arc<PodInfo>>,
}

impl NodeInfo {
    fn new(object: Value) -> Self {
        Self {
            allocatable: amounts(at(&object, "status.allocatable")),
            object: Arc::new(object),
            requested: Amounts::new(),
            pods: BTreeMap::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.object.name()
    }

    pub(super) fn labels(&self) -> &Map<String, Value> {
        string_map(&self.object, "labels")
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).and_then(Value::as_str)
    }

    pub(super) fn add(&mut self, pod: Arc<PodInfo>) {
        self.remove(pod.object.uid());
        add(&mut self.requested, &pod.requests);
        self.pods.insert(pod.object.uid().to_owned(), pod);
    }

    pub(super) fn remove(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            for (name, amount) in &pod.requests {
                *self.requested.entry(name.clone()).or_default() -= amount;
            }
        }
    }
}

/// The whole cluster.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub nodes: BTreeMap<String, NodeInfo>,
    node_of: BTreeMap<String, String>,
    /// Pods of nodes that are not known (yet).
    homeless: BTreeMap<String, (String, Arc<PodInfo>)>,
    /// By namespace and name.
    pub claims: BTreeMap<(String, String), Value>,
    pub volumes: BTreeMap<String, Value>,
    pub classes: BTreeMap<String, Value>,
    /// How many pods on nodes say whom they do not want beside them.
    pub repelling: usize,
}

impl Cluster {
    pub(super) fn put_node(&mut self, node: Value) {
        let name = node.name().to_owned();
        let mut info = NodeInfo::new(node);
        if let Some(before) = self.nodes.remove(&name) {
            for pod in before.pods.into_values() {
                info.add(pod);
            }
        }
        let back: Vec<String> = self
            .homeless
            .iter()
            .filter(|(_, (node, _))| *node == name)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in back {
            if let Some((_, pod)) = self.homeless.remove(&uid) {
                info.add(pod);
            }
        }
        self.nodes.insert(name, info);
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.remove(name) {
            for (uid, pod) in node.pods {
                self.homeless.insert(uid, (name.to_owned(), pod));
            }
        }
    }

    pub(super) fn is_placed(&self, uid: &str) -> bool {
        self.node_of.contains_key(uid)
    }

    pub(super) fn place(&mut self, pod: Arc<PodInfo>, node: &str) {
        self.forget(pod.object.uid());
        self.repelling += usize::from(repels(&pod));
        self.node_of.insert(pod.object.uid().to_owned(), node.to_owned());
        match self.nodes.get_mut(node) {
            Some(info) => info.add(pod),
            None => {
                self.homeless
                    .insert(pod.object.uid().to_owned(), (node.to_owned(), pod));
            }
        }
    }

    pub(super) fn forget(&mut self, uid: &str) {
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        let homeless = self.homeless.remove(uid).map(|(_, pod)| pod);
        let pod = self
            .nodes
            .get(&node)
            .and_then(|info| info.pods.get(uid).cloned())
            .or(homeless);
        if pod.is_some_and(|pod| repels(&pod)) {
            self.repelling = self.repelling.saturating_sub(1);
        }
        if let Some(info) = self.nodes.get_mut(&node) {
            info.remove(uid);
        }
    }
}

fn repels(pod: &PodInfo) -> bool {
    !list(
        &pod.object,
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    )
    .is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "500m"}}}]}), 1500)]
    #[case(json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}], "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]}), 3000)]
    #[case(
        json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "2"}}}]}),
        3000
    )]
    #[case(json!({"containers": [{}], "overhead": {"cpu": "100m"}}), 100)]
    fn what_pods_ask_for(#[case] spec: Value, #[case] milli: i128) {
        let amounts = requests(&json!({"spec": spec}), Count::Asked);
        assert_eq!(amounts.get("cpu").copied().unwrap_or_default() / 1_000_000, milli);
    }

    #[test]
    fn pods_wait_for_their_nodes() {
        let mut cluster = Cluster::default();
        let pod = json!({"metadata": {"uid": "1"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
        cluster.place(Arc::new(PodInfo::placed(&pod)), "n");
        cluster.put_node(json!({"metadata": {"name": "n"}}));
        assert_eq!(cluster.nodes["n"].requested["cpu"], 1_000_000_000);
        cluster.remove_node("n");
        cluster.put_node(json!({"metadata": {"name": "n"}}));
        assert_eq!(cluster.nodes["n"].pods.len(), 1);
        cluster.forget("1");
        assert_eq!(cluster.nodes["n"].requested["cpu"], 0);
    }
}
