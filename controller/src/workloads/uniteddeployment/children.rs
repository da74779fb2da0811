//! The workloads of subsets, of four kinds, read alike.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::kinds::ChildKind;
use crate::api::labels;
use crate::api::v1alpha1::CloneSet;
use crate::api::v1beta1::StatefulSet;
use crate::kit::controller_of;
use crate::kit::numbers::{Round, scaled};
use crate::kit::views::view_of_kind;
use crate::pods::{CachedPod, pod};

/// How many pods a workload has that does not say it.
const DEFAULT_REPLICAS: i32 = 1;

/// The workload of a subset.
#[derive(Debug, Clone)]
pub(super) struct Child {
    /// Its kind.
    pub(super) kind: ChildKind,
    /// Its name.
    pub(super) name: String,
    /// Its uid.
    pub(super) uid: String,
    /// Its version.
    pub(super) version: String,
    /// When it was created.
    pub(super) created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub(super) is_ending: bool,
    /// Whether an object controls it.
    pub(super) is_owned: bool,
    /// Its labels.
    pub(super) labels: BTreeMap<String, String>,
    /// The patch of the subset that it was made with.
    pub(super) patch: String,
    /// Its specification.
    pub(super) spec: ChildSpec,
    /// How many pods it has.
    pub(super) replicas: i32,
    /// How many of them are ready.
    pub(super) ready: i32,
    /// Its pods.
    pub(super) pods: Vec<Arc<CachedPod>>,
}

/// The specification of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChildSpec {
    /// How many pods it is to have.
    pub(super) replicas: i32,
    /// How many of them keep the old revision.
    pub(super) partition: i32,
    /// Whether it leaves pods alone until a person deletes them.
    pub(super) on_delete: bool,
}

impl Child {
    fn new(kind: ChildKind, metadata: &ObjectMeta, spec: ChildSpec, counts: [i32; 2]) -> Self {
        let annotations = metadata.annotations.as_ref();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            kind,
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_ending: metadata.deletion_timestamp.is_some(),
            is_owned: controller_of(metadata).is_some(),
            labels: metadata.labels.clone().unwrap_or_default(),
            patch: annotations
                .and_then(|notes| notes.get(labels::SUBSET_PATCH).cloned())
                .unwrap_or_default(),
            spec,
            replicas: counts[0],
            ready: counts[1],
            pods: Vec::new(),
        }
    }

    /// The name of its subset; empty if it has none.
    pub(super) fn subset(&self) -> &str {
        self.label(labels::SUBSET_NAME)
    }

    /// The revision that it was made from.
    pub(super) fn revision(&self) -> &str {
        self.label(labels::SUBSET_REVISION)
    }

    fn label(&self, key: &str) -> &str {
        self.labels.get(key).map_or("", String::as_str)
    }

    /// How many of its pods keep the old revision. Where pods are updated by being deleted, those that have it do.
    pub(super) fn partition(&self) -> i32 {
        if !self.spec.on_delete {
            return self.spec.partition;
        }
        let old = self.pods.iter().filter(|pod| revision_of(pod) != self.revision());
        i32::try_from(old.count()).unwrap_or(i32::MAX)
    }
}

/// The revision of the UnitedDeployment that a pod was made from.
pub(super) fn revision_of(pod: &CachedPod) -> &str {
    pod::label(pod, labels::SUBSET_REVISION).unwrap_or_default()
}

impl From<&CloneSet> for Child {
    fn from(set: &CloneSet) -> Self {
        let replicas = set.spec.replicas.unwrap_or(DEFAULT_REPLICAS);
        let strategy = set.spec.update_strategy.as_ref();
        let partition = strategy.and_then(|strategy| strategy.partition.as_ref());
        let partition = partition.map(|partition| scaled(partition, replicas, Round::Up).unwrap_or(0));
        let spec = ChildSpec {
            replicas,
            partition: partition.unwrap_or(0),
            on_delete: false,
        };
        let counts = set.status.as_ref();
        let counts = counts.map_or([0, 0], |status| [status.replicas, status.ready_replicas]);
        Self::new(ChildKind::CloneSet, &set.metadata, spec, counts)
    }
}

impl From<&StatefulSet> for Child {
    fn from(set: &StatefulSet) -> Self {
        let strategy = set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let spec = ChildSpec {
            replicas: set.spec.replicas.unwrap_or(DEFAULT_REPLICAS),
            partition: rolling.and_then(|rolling| rolling.partition).unwrap_or(0),
            on_delete: strategy.is_some_and(|strategy| strategy.kind.as_deref() == Some("OnDelete")),
        };
        let counts = set.status.as_ref();
        let counts = counts.map_or([0, 0], |status| [status.replicas, status.ready_replicas]);
        Self::new(ChildKind::AdvancedStatefulSet, &set.metadata, spec, counts)
    }
}

/// A workload of Kubernetes as the cache holds it.
#[derive(Debug)]
pub(super) struct BuiltIn<K> {
    metadata: ObjectMeta,
    spec: ChildSpec,
    counts: [i32; 2],
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for BuiltIn<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec,
            counts: self.counts,
            kind: PhantomData,
        }
    }
}

impl<K> From<Value> for BuiltIn<K> {
    fn from(object: Value) -> Self {
        let number = |pointer: &str| {
            let number = object.pointer(pointer).and_then(Value::as_i64);
            number.map(|number| i32::try_from(number).unwrap_or(i32::MAX))
        };
        let strategy = object
            .pointer("/spec/updateStrategy/type")
            .and_then(Value::as_str);
        let spec = ChildSpec {
            replicas: number("/spec/replicas").unwrap_or(DEFAULT_REPLICAS),
            partition: number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0),
            on_delete: strategy == Some("OnDelete"),
        };
        let counts = ["/status/replicas", "/status/readyReplicas"].map(|count| number(count).unwrap_or(0));
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
        Self {
            metadata: lean(metadata),
            spec,
            counts,
            kind: PhantomData,
        }
    }
}

/// The metadata without the fields that are not read.
fn lean(metadata: ObjectMeta) -> ObjectMeta {
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.retain(|key, _| key == labels::SUBSET_PATCH);
    ObjectMeta {
        annotations: (!annotations.is_empty()).then_some(annotations),
        managed_fields: None,
        ..metadata
    }
}

view_of_kind!(BuiltIn);

impl From<&BuiltIn<apps::StatefulSet>> for Child {
    fn from(set: &BuiltIn<apps::StatefulSet>) -> Self {
        Self::new(ChildKind::StatefulSet, &set.metadata, set.spec, set.counts)
    }
}

impl From<&BuiltIn<apps::Deployment>> for Child {
    fn from(deployment: &BuiltIn<apps::Deployment>) -> Self {
        Self::new(
            ChildKind::Deployment,
            &deployment.metadata,
            deployment.spec,
            deployment.counts,
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn object(spec: Value) -> Value {
        let mut spec = spec;
        spec["selector"] = json!({});
        spec["template"] = json!({});
        json!({
            "metadata": { "name": "u-a-1", "uid": "1", "resourceVersion": "7", "labels": { "l": "1", labels::SUBSET_NAME: "a",
                labels::SUBSET_REVISION: "u-1" }, "annotations": { labels::SUBSET_PATCH: "{}", "other": "x" } },
            "spec": spec,
            "status": { "replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 1, "currentReplicas": 0 },
        })
    }

    fn read(kind: ChildKind, object: Value) -> Child {
        match kind {
            ChildKind::StatefulSet => Child::from(&BuiltIn::<apps::StatefulSet>::from(object)),
            ChildKind::Deployment => Child::from(&BuiltIn::<apps::Deployment>::from(object)),
            ChildKind::AdvancedStatefulSet => {
                Child::from(&serde_json::from_value::<StatefulSet>(object).unwrap())
            }
            ChildKind::CloneSet => Child::from(&serde_json::from_value::<CloneSet>(object).unwrap()),
        }
    }

    /// The kind, the spec, and the fields read of it: the replicas, the partition, whether pods are updated by being deleted.
    #[rstest]
    #[case(ChildKind::CloneSet, json!({ "replicas": 3, "updateStrategy": { "partition": "50%" } }), (3, 2, false))]
    #[case(ChildKind::CloneSet, json!({ "updateStrategy": { "partition": "half" } }), (1, 0, false))]
    #[case(ChildKind::StatefulSet, json!({ "replicas": 3, "updateStrategy": { "rollingUpdate": { "partition": 2 } } }), (3, 2, false))]
    #[case(ChildKind::StatefulSet, json!({ "updateStrategy": { "type": "OnDelete" } }), (1, 0, true))]
    #[case(ChildKind::AdvancedStatefulSet, json!({ "replicas": 0, "updateStrategy": { "rollingUpdate": { "partition": 2 } } }), (0, 2, false))]
    #[case(ChildKind::AdvancedStatefulSet, json!({ "updateStrategy": { "type": "OnDelete" } }), (1, 0, true))]
    #[case(ChildKind::Deployment, json!({ "replicas": 4, "strategy": { "rollingUpdate": { "maxSurge": 1 } } }), (4, 0, false))]
    fn kinds_are_read_alike(
        #[case] kind: ChildKind,
        #[case] spec: Value,
        #[case] (replicas, partition, on_delete): (i32, i32, bool),
    ) {
        let child = read(kind, object(spec));
        assert_eq!(
            child.spec,
            ChildSpec {
                replicas,
                partition,
                on_delete
            }
        );
        assert_eq!((child.replicas, child.ready), (3, 2));
        assert_eq!(
            (child.subset(), child.revision(), child.patch.as_str()),
            ("a", "u-1", "{}")
        );
        assert_eq!(
            (child.kind, child.version.as_str(), child.is_owned),
            (kind, "7", false)
        );
    }

    #[test]
    fn a_set_that_updates_on_deletion_keeps_its_old_pods() {
        let mut child = read(
            ChildKind::StatefulSet,
            object(json!({ "updateStrategy": { "type": "OnDelete" } })),
        );
        let pod = |name: &str, revision: &str| {
            let pod = TestPod::new(name).label(labels::SUBSET_REVISION, revision);
            Arc::new(CachedPod::from(pod.build()))
        };
        child.pods = vec![pod("a", "u-0"), pod("b", "u-1"), pod("c", "")];
        assert_eq!(child.partition(), 2);
    }
}
