//! The scheduler's view: nodes and their pods, volumes and claims.

pub(super) use machinery::meta::{list, text};
use std::collections::BTreeMap;
use std::sync::Arc;

use shared_json::{Array, Map, Text, Value};

use machinery::meta::{ObjectMeta as _, at, string_map};
pub(super) use machinery::placement::Amounts;
use machinery::placement::{Count, add, amounts, requests, scored};
use machinery::selector::matches_selector;

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
    /// Processors and memory as scores count them: containers that ask for nothing count, too.
    pub scored: [i128; 2],
    pub ports: Vec<HostPort>,
    pub priority: i64,
    /// The claims that it uses, by name.
    pub claims: Vec<String>,
    /// The uid of the ReplicaSet, ReplicationController or StatefulSet that it is of.
    pub owner: Option<Box<str>>,
    /// Whether it leaves for a more important one.
    pub driven_away: bool,
    /// Whether it is known to have a node: it is not so of one whose binding is under way.
    pub bound: bool,
}

/// The set of equal pods that a pod belongs to.
fn owner(pod: &Value) -> Option<Box<str>> {
    let owners = list(pod, "metadata.ownerReferences");
    let controller = owners
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    matches!(
        text(controller, "kind"),
        "ReplicaSet" | "ReplicationController" | "StatefulSet"
    )
    .then(|| text(controller, "uid").into())
}

fn is_driven_away(pod: &Value) -> bool {
    pod.is_terminating()
        && list(pod, "status.conditions").iter().any(|condition| {
            text(condition, "type") == "DisruptionTarget"
                && text(condition, "status") == "True"
                && text(condition, "reason") == "PreemptionByScheduler"
        })
}

impl PodInfo {
    pub(super) fn new(object: impl Into<Arc<Value>>) -> Self {
        let object = object.into();
        Self {
            requests: requests(&object, Count::Most),
            scored: scored(&object),
            claims: super::filters::claims_of(&object),
            owner: owner(&object),
            driven_away: is_driven_away(&object),
            bound: !text(&object, "spec.nodeName").is_empty(),
            ports: host_ports(&object),
            priority: at(&object, "spec.priority")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            object,
        }
    }

    /// The same of a newer version, if it differs in no field that counts. (The allocated resources of containers are in the
    /// status.)
    fn of_newer(&self, object: &Arc<Value>) -> Option<Self> {
        let same = |path: &str| match (at(&self.object, path), at(object, path)) {
            (Some(known), Some(new)) => known.is_same(new),
            (known, new) => known.is_none() && new.is_none(),
        };
        let requests = requests(object, Count::Most);
        let same = same("spec") && same("metadata.ownerReferences") && requests == self.requests;
        same.then(|| Self {
            object: Arc::clone(object),
            driven_away: is_driven_away(object),
            bound: self.bound,
            requests,
            scored: self.scored,
            ports: self.ports.clone(),
            priority: self.priority,
            claims: self.claims.clone(),
            owner: self.owner.clone(),
        })
    }

    pub(super) fn labels(&self) -> &Map {
        string_map(&self.object, "labels")
    }

    /// The node on which room is kept for it, by its status: empty if there is none.
    pub(super) fn nominated(&self) -> &str {
        text(&self.object, "status.nominatedNodeName")
    }
}

/// A node and the pods on it.
#[derive(Debug, Clone)]
pub(super) struct NodeInfo {
    pub object: Arc<Value>,
    name: Box<str>,
    /// Whether it is to get no more pods.
    pub cordoned: bool,
    pub taints: Array,
    pub allocatable: Amounts,
    pub requested: Amounts,
    /// The requests as scores count them.
    pub scored: [i128; 2],
    /// By uid.
    pub pods: BTreeMap<Text, Arc<PodInfo>>,
}

impl NodeInfo {
    fn new(object: Value) -> Self {
        Self {
            name: object.name().into(),
            cordoned: at(&object, "spec.unschedulable").and_then(Value::as_bool) == Some(true),
            taints: at(&object, "spec.taints")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            allocatable: amounts(at(&object, "status.allocatable")),
            object: Arc::new(object),
            requested: Amounts::new(),
            scored: [0; 2],
            pods: BTreeMap::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn labels(&self) -> &Map {
        string_map(&self.object, "labels")
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).and_then(Value::as_str)
    }

    pub(super) fn add(&mut self, pod: Arc<PodInfo>) {
        self.remove(pod.object.uid());
        add(&mut self.requested, &pod.requests);
        self.scored = std::array::from_fn(|index| self.scored[index] + pod.scored[index]);
        self.pods.insert(pod.object.meta_text("uid"), pod);
    }

    pub(super) fn remove(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            for (name, amount) in &pod.requests {
                *self.requested.entry(name.clone()).or_default() -= amount;
            }
            self.scored = std::array::from_fn(|index| self.scored[index] - pod.scored[index]);
        }
    }
}

/// The whole cluster.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub nodes: BTreeMap<String, NodeInfo>,
    node_of: BTreeMap<Text, Text>,
    /// Pods of nodes that are not known (yet).
    homeless: BTreeMap<Text, (String, Arc<PodInfo>)>,
    /// By namespace and name.
    pub claims: BTreeMap<(String, String), Value>,
    pub volumes: BTreeMap<String, Value>,
    pub classes: BTreeMap<String, Value>,
    /// The CSINode of each node.
    pub drivers: BTreeMap<String, Value>,
    /// By namespace and name: claims of devices.
    pub device_claims: BTreeMap<(String, String), Value>,
    pub device_classes: BTreeMap<String, Value>,
    /// Slices of pools of devices.
    pub slices: BTreeMap<String, Value>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<String, Value>,
    /// The selectors of services, by namespace and name.
    pub services: BTreeMap<(String, String), Value>,
    /// By namespace and name.
    pub budgets: BTreeMap<(String, String), Value>,
    /// The number of pods on nodes with a required anti-affinity.
    pub repelling: usize,
    /// How many pods on nodes say anything of others.
    pub caring: usize,
    /// Of every set of equal pods, how many of them each node has.
    of_owner: BTreeMap<Box<str>, BTreeMap<String, i64>>,
    /// How many nodes have an image, by its names.
    images: BTreeMap<String, i64>,
    /// Pods for which room is being made on a node, by uid.
    nominated: BTreeMap<String, (String, Arc<PodInfo>)>,
}

impl Cluster {
    pub(super) fn put_node(&mut self, node: Value) {
        let name = node.name().to_owned();
        let mut info = NodeInfo::new(node);
        self.count_images(&info.object.clone(), 1);
        if let Some(before) = self.nodes.remove(&name) {
            self.count_images(&before.object, -1);
            for pod in before.pods.into_values() {
                info.add(pod);
            }
        }
        let back: Vec<Text> = self
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
            self.count_images(&node.object, -1);
            for (uid, pod) in node.pods {
                self.homeless.insert(uid, (name.to_owned(), pod));
            }
        }
    }

    pub(super) fn is_placed(&self, uid: &str) -> bool {
        self.node_of.contains_key(uid)
    }

    /// Takes a newer version of a pod that has its node.
    pub(super) fn place_newest(&mut self, pod: Arc<Value>, node: &str) {
        let known = self
            .nodes
            .get_mut(node)
            .and_then(|node| node.pods.get_mut(pod.uid()));
        if let Some(known) = known
            && let Some(newer) = known.of_newer(&pod)
        {
            *known = Arc::new(newer);
            return;
        }
        self.place(Arc::new(PodInfo::new(pod)), node);
    }

    /// A pod that has a node.
    pub(super) fn placed(&self, uid: &str) -> Option<Arc<PodInfo>> {
        let node = self.nodes.get(self.node_of.get(uid)?.as_str());
        let there = node.and_then(|node| node.pods.get(uid));
        there
            .or_else(|| self.homeless.get(uid).map(|(_, pod)| pod))
            .cloned()
    }

    pub(super) fn place(&mut self, pod: Arc<PodInfo>, node: &str) {
        self.forget(pod.object.uid());
        self.repelling += usize::from(repels(&pod));
        self.caring += usize::from(cares(&pod));
        self.nominated.remove(pod.object.uid());
        if let Some(owner) = &pod.owner {
            let on_nodes = self.of_owner.entry(owner.clone()).or_default();
            *on_nodes.entry(node.to_owned()).or_default() += 1;
        }
        self.node_of.insert(pod.object.meta_text("uid"), node.into());
        match self.nodes.get_mut(node) {
            Some(info) => info.add(pod),
            None => {
                self.homeless
                    .insert(pod.object.meta_text("uid"), (node.to_owned(), pod));
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
            .get(node.as_str())
            .and_then(|info| info.pods.get(uid).cloned())
            .or(homeless);
        if let Some(pod) = pod {
            self.repelling = self.repelling.saturating_sub(usize::from(repels(&pod)));
            self.caring = self.caring.saturating_sub(usize::from(cares(&pod)));
            self.forget_owner(&pod, &node);
        }
        if let Some(info) = self.nodes.get_mut(node.as_str()) {
            info.remove(uid);
        }
    }

    fn forget_owner(&mut self, pod: &PodInfo, node: &str) {
        let Some(owner) = &pod.owner else { return };
        let Some(on_nodes) = self.of_owner.get_mut(owner) else {
            return;
        };
        if let Some(count) = on_nodes.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                on_nodes.remove(node);
            }
        }
        if on_nodes.is_empty() {
            self.of_owner.remove(owner);
        }
    }

    fn count_images(&mut self, node: &Value, by: i64) {
        let images = list(node, "status.images").iter();
        for name in images
            .flat_map(|image| list(image, "names"))
            .filter_map(Value::as_str)
        {
            let count = self.images.entry(name.to_owned()).or_default();
            *count += by;
            if *count == 0 {
                self.images.remove(name);
            }
        }
    }

    /// How many nodes have an image.
    pub(super) fn nodes_with_image(&self, name: &str) -> i64 {
        self.images.get(name).copied().unwrap_or_default()
    }

    /// How many pods of a pod's set each node has.
    pub(super) fn equals(&self, pod: &PodInfo) -> Option<&BTreeMap<String, i64>> {
        self.of_owner.get(pod.owner.as_ref()?)
    }

    /// Whether a selector of namespaces selects one.
    pub(super) fn selects_namespace(&self, selector: &Value, namespace: &str) -> bool {
        let labels = self.namespaces.get(namespace).and_then(Value::as_object);
        let none = Map::new();
        matches_selector(Some(selector), labels.unwrap_or(&none))
    }

    /// Room is being made for a pod on a node, or no longer.
    pub(super) fn nominate(&mut self, pod: &Arc<PodInfo>, node: Option<&str>) {
        let uid = pod.object.uid().to_owned();
        match node {
            Some(node) => self.nominated.insert(uid, (node.to_owned(), Arc::clone(pod))),
            None => self.nominated.remove(&uid),
        };
    }

    /// Removes a deleted pod's nomination.
    pub(super) fn withdraw(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        self.nominated.remove(uid).map(|(_, pod)| pod)
    }

    /// The node on which room is being made for a pod.
    pub(super) fn nominated_node(&self, pod: &PodInfo) -> Option<&str> {
        let (node, _) = self.nominated.get(pod.object.uid())?;
        Some(node)
    }

    /// A node as a pod finds it: with the pods nominated to it, if they are no less important.
    pub(super) fn with_nominated(&self, node: &NodeInfo, pod: &PodInfo) -> Option<NodeInfo> {
        let mut out: Option<NodeInfo> = None;
        for (uid, (name, other)) in &self.nominated {
            if name == node.name() && uid != pod.object.uid() && other.priority >= pod.priority {
                out.get_or_insert_with(|| node.clone()).add(Arc::clone(other));
            }
        }
        out
    }
}

/// Whether a pod has an affinity or anti-affinity to other pods.
fn cares(pod: &PodInfo) -> bool {
    at(&pod.object, "spec.affinity").is_some_and(|affinity| {
        ["podAffinity", "podAntiAffinity"]
            .iter()
            .any(|kind| affinity.get(*kind).is_some_and(Value::is_object))
    })
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
    use shared_json::json;

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
        cluster.place(Arc::new(PodInfo::new(pod)), "n");
        cluster.put_node(json!({"metadata": {"name": "n"}}));
        assert_eq!(cluster.nodes["n"].requested["cpu"], 1_000_000_000);
        cluster.remove_node("n");
        cluster.put_node(json!({"metadata": {"name": "n"}}));
        assert_eq!(cluster.nodes["n"].pods.len(), 1);
        cluster.forget("1");
        assert_eq!(cluster.nodes["n"].requested["cpu"], 0);
    }
}
