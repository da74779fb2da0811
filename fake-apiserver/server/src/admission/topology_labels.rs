//! PodTopologyLabels: copies the zone and region labels of a node to its pods.

use machinery::meta::{at, string_map};
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation};
use crate::server::ServerState;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// A new pod that has a node already gets the labels of it.
pub(super) fn mutate(server: &ServerState, attributes: &mut Attributes) {
    if attributes.operation != Operation::Create || !attributes.is("", "pods") {
        return;
    }
    if let Some(pod) = attributes.object.as_mut() {
        let node = at(pod, "spec.nodeName").and_then(Value::as_str);
        if let Some(node) = node.map(str::to_owned) {
            label(server, &node, pod);
        }
    }
}

/// A binding gets the labels of the node that it names: the pod gets those of its binding.
pub(crate) fn label_binding(server: &ServerState, binding: &mut Value) {
    let target = |field: &str| binding["target"][field].as_str().unwrap_or_default().to_owned();
    if target("kind") == "Node" {
        label(server, &target("name"), binding);
    }
}

fn label(server: &ServerState, node: &str, object: &mut Value) {
    let table = GroupResource::new("", "nodes");
    let Some(node) = server.store.get(&table, &ObjectKey::new("", node)) else {
        return;
    };
    for name in LABELS {
        if let Some(value) = string_map(&node.value, "labels").get(name) {
            object["metadata"]["labels"][name] = value.clone();
        }
    }
}
