//! A node as the caches hold it: the fields that say which pods may run on it.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use pod_rules::fields::path;
use serde::{Deserialize, Deserializer};
use shared_json::{Value, json};

/// The label of nodes on which no kubelet runs, and its value.
const VIRTUAL: (&str, &str) = ("type", "virtual-kubelet");

/// A node: its name, labels, taints and allocatable resources, and whether it takes new pods and is ready, and since when.
#[derive(Debug, Clone, Default)]
pub struct CachedNode {
    metadata: ObjectMeta,
    is_ready: bool,
    ready_since: Option<Timestamp>,
    /// All of that in the form of the whole node.
    shape: Value,
}

impl CachedNode {
    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether its kubelet says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// When it last became ready, or ceased to be.
    pub fn ready_since(&self) -> Option<Timestamp> {
        self.ready_since
    }

    /// Whether no kubelet runs on it, and so no daemon of OpenKruise.
    pub fn is_virtual(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        let kind = labels.and_then(|labels| labels.get(VIRTUAL.0));
        kind.map(String::as_str) == Some(VIRTUAL.1)
    }

    /// All that pods ask of a node, as fields of one.
    pub fn shape(&self) -> &Value {
        &self.shape
    }
}

impl From<Value> for CachedNode {
    fn from(node: Value) -> Self {
        let part = |pointer| path(&node, pointer).cloned().unwrap_or_default();
        let text = |pointer| Some(path(&node, pointer)?.as_str()?.to_owned());
        let labels: Option<_> = path(&node, "/metadata/labels")
            .and_then(Value::as_object)
            .map(|labels| {
                let labels = labels.iter();
                labels
                    .filter_map(|(key, value)| Some((key.to_string(), value.as_str()?.to_owned())))
                    .collect()
            });
        let conditions = path(&node, "/status/conditions").and_then(Value::as_array);
        let word = |condition: &'_ Value, field| Some(condition.get(field)?.as_str()?.to_owned());
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|condition| word(condition, "type").as_deref() == Some("Ready"));
        let is_ready = ready.is_some_and(|ready| word(ready, "status").as_deref() == Some("True"));
        let ready_since = ready.and_then(|ready| word(ready, "lastTransitionTime")?.parse().ok());
        let deleted = text("/metadata/deletionTimestamp").and_then(|time| time.parse().ok());
        let shape = json!({
            "metadata": { "name": part("/metadata/name"), "labels": part("/metadata/labels") },
            "spec": { "taints": part("/spec/taints"), "unschedulable": part("/spec/unschedulable") },
            "status": { "allocatable": part("/status/allocatable") },
        });
        Self {
            metadata: ObjectMeta {
                name: text("/metadata/name"),
                uid: text("/metadata/uid"),
                resource_version: text("/metadata/resourceVersion"),
                labels,
                deletion_timestamp: deleted.map(Time),
                ..ObjectMeta::default()
            },
            is_ready,
            ready_since,
            shape,
        }
    }
}

impl<'de> Deserialize<'de> for CachedNode {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        Value::deserialize(decoder).map(Self::from)
    }
}

impl Resource for CachedNode {
    type DynamicType = ();
    type Scope = <Node as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Node::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Node::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Node::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Node::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
