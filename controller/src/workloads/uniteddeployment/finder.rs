//! The workloads of a UnitedDeployment in the caches.

use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::core::{Selector, SelectorExt as _};

use super::children::{BuiltIn, Child};
use super::kinds::ChildKind;
use crate::api::labels;
use crate::api::v1alpha1::CloneSet;
use crate::api::v1beta1::StatefulSet;
use crate::kit::{Informer, ObjectKey, Owner, controller_of};
use crate::pods::CachedPod;
use crate::pods::pod::{self, Pod};
use crate::targets::Scaled;

/// The caches of workloads and their pods.
pub(super) struct Finder {
    pub(super) stateful_sets: Informer<BuiltIn<apps::StatefulSet>>,
    pub(super) advanced: Informer<StatefulSet>,
    pub(super) clone_sets: Informer<CloneSet>,
    pub(super) deployments: Informer<BuiltIn<apps::Deployment>>,
    pub(super) replica_sets: Informer<Scaled<apps::ReplicaSet>>,
    pub(super) pods: Informer<CachedPod>,
}

/// Reads objects of one kind.
fn read<'k, K>(objects: &'k [Arc<K>]) -> impl Iterator<Item = Child> + 'k
where
    Child: From<&'k K>,
{
    objects.iter().map(|object| Child::from(object.as_ref()))
}

impl Finder {
    /// The workloads of a kind that a UnitedDeployment controls and selects, with their pods.
    pub(super) fn owned(&self, owner: &Owner, selector: &Selector, kind: ChildKind) -> Vec<Child> {
        let uid = &owner.uid;
        let mut children: Vec<Child> = match kind {
            ChildKind::StatefulSet => read(&self.stateful_sets.owned_by(uid)).collect(),
            ChildKind::AdvancedStatefulSet => read(&self.advanced.owned_by(uid)).collect(),
            ChildKind::CloneSet => read(&self.clone_sets.owned_by(uid)).collect(),
            ChildKind::Deployment => read(&self.deployments.owned_by(uid)).collect(),
        };
        children.retain(|child| selector.matches(&child.labels));
        for child in &mut children {
            child.pods = self.pods_of(child);
        }
        children
    }

    /// The workloads of a kind without an owner that a UnitedDeployment selects and that say their subset.
    pub(super) fn orphans(&self, owner: &Owner, selector: &Selector, kind: ChildKind) -> Vec<Child> {
        let namespace = &owner.key.namespace;
        let mut children: Vec<Child> = match kind {
            ChildKind::StatefulSet => read(&self.stateful_sets.orphans(namespace)).collect(),
            ChildKind::AdvancedStatefulSet => read(&self.advanced.orphans(namespace)).collect(),
            ChildKind::CloneSet => read(&self.clone_sets.orphans(namespace)).collect(),
            ChildKind::Deployment => read(&self.deployments.orphans(namespace)).collect(),
        };
        children.retain(|child| {
            !child.is_owned
                && !child.is_ending
                && !child.subset().is_empty()
                && selector.matches(&child.labels)
        });
        children
    }

    fn pods_of(&self, child: &Child) -> Vec<Arc<CachedPod>> {
        if child.kind != ChildKind::Deployment {
            return self.pods.owned_by(&child.uid);
        }
        let sets = self.replica_sets.owned_by(&child.uid);
        let uids = sets.iter().filter_map(|set| set.meta().uid.as_deref());
        uids.flat_map(|uid| self.pods.owned_by(uid)).collect()
    }

    /// The UnitedDeployment of the workload that a pod belongs to.
    pub(super) fn set_of(&self, pod: &Pod) -> Option<ObjectKey> {
        pod::label(pod, labels::SUBSET_NAME)?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let at = |name: &str| ObjectKey::new(namespace, name);
        let owner = controller_of(&pod.metadata)?;
        let key = at(&owner.name);
        let group = owner.api_version.split('/').next().unwrap_or_default();
        let set = match (group, owner.kind.as_str()) {
            ("apps.kruise.io", "CloneSet") => controller(&self.clone_sets.get(&key)?),
            ("apps.kruise.io", "StatefulSet") => controller(&self.advanced.get(&key)?),
            ("apps", "StatefulSet") => controller(&self.stateful_sets.get(&key)?),
            ("apps", "ReplicaSet") => {
                let deployment = controller(&self.replica_sets.get(&key)?)?;
                controller(&self.deployments.get(&at(&deployment.name))?)
            }
            _ => None,
        }?;
        (set.kind == "UnitedDeployment").then(|| at(&set.name))
    }
}

/// The controller of an object.
fn controller<K: Resource>(object: &Arc<K>) -> Option<OwnerReference> {
    controller_of(object.meta()).cloned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::v1alpha1::UnitedDeployment;
    use crate::kit::Informer;
    use crate::pods::test_pods::TestPod;

    /// An object whose controller is given as `group/version Kind name`.
    fn object(namespace: &str, name: &str, owner: &str, subset: Option<&str>) -> Value {
        let mut words = owner.split(' ');
        let mut next = || words.next().unwrap_or_default();
        let reference = json!({ "apiVersion": next(), "kind": next(), "name": next(), "uid": format!("uid-{}", owner.rsplit(' ').next().unwrap()),
            "controller": true });
        let owners = if owner.is_empty() {
            json!([])
        } else {
            json!([reference])
        };
        let mut labels = json!({ "app": "x" });
        if let Some(subset) = subset {
            labels[labels::SUBSET_NAME] = json!(subset);
        }
        json!({ "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": labels,
                "ownerReferences": owners },
            "spec": { "selector": {}, "template": {} } })
    }

    fn cache<K>(objects: Vec<Value>) -> Informer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        let cache = Informer::new();
        for object in objects {
            let object: K = serde_json::from_value(object).unwrap();
            cache.learn(&ObjectKey::of(&object), Some(object));
        }
        cache
    }

    const OWN: &str = "apps.kruise.io/v1alpha1 UnitedDeployment u";

    fn finder() -> Finder {
        let clone_sets = vec![
            object("default", "c-1", OWN, Some("a")),
            object("default", "c-2", "", Some("b")),
            object("default", "c-3", "", None),
            object("other", "c-4", "", Some("a")),
            object(
                "default",
                "c-5",
                "apps.kruise.io/v1alpha1 UnitedDeployment v",
                Some("a"),
            ),
        ];
        let mut stray = object("default", "c-6", OWN, Some("a"));
        stray["metadata"]["labels"]["app"] = json!("y");
        let mut going = object("default", "c-7", "", Some("a"));
        going["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
        Finder {
            stateful_sets: cache(vec![object("default", "s-1", OWN, Some("a"))]),
            advanced: cache(vec![object("default", "a-1", OWN, Some("a"))]),
            clone_sets: cache([clone_sets, vec![stray, going]].concat()),
            deployments: cache(vec![object("default", "d-1", OWN, Some("a"))]),
            replica_sets: cache(vec![object(
                "default",
                "r-1",
                "apps/v1 Deployment d-1",
                Some("a"),
            )]),
            pods: cache(vec![
                object("default", "p-1", "apps/v1 ReplicaSet r-1", Some("a")),
                object(
                    "default",
                    "p-2",
                    "apps.kruise.io/v1alpha1 CloneSet c-1",
                    Some("a"),
                ),
            ]),
        }
    }

    fn names(children: &[Child]) -> String {
        let names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
        names.join(" ")
    }

    /// The kind, the workloads that are the UnitedDeployment's with the number of their pods, and those that become its own.
    #[rstest]
    #[case(ChildKind::CloneSet, "c-1", 1, "c-2")]
    #[case(ChildKind::StatefulSet, "s-1", 0, "")]
    #[case(ChildKind::AdvancedStatefulSet, "a-1", 0, "")]
    #[case(ChildKind::Deployment, "d-1", 1, "")]
    fn workloads(#[case] kind: ChildKind, #[case] owned: &str, #[case] pods: usize, #[case] orphans: &str) {
        let set = json!({ "metadata": { "name": "u", "namespace": "default", "uid": "uid-u" },
            "spec": { "selector": { "matchLabels": { "app": "x" } } } });
        let set: UnitedDeployment = serde_json::from_value(set).unwrap();
        let (finder, owner) = (finder(), Owner::of(&set));
        let selector = Selector::try_from(set.spec.selector).unwrap();
        let children = finder.owned(&owner, &selector, kind);
        assert_eq!((names(&children).as_str(), children[0].pods.len()), (owned, pods));
        assert_eq!(names(&finder.orphans(&owner, &selector, kind)), orphans);
    }

    /// The controller of a pod, and the UnitedDeployment that it belongs to.
    #[rstest]
    #[case("apps/v1 ReplicaSet r-1", Some("u"))]
    #[case("apps/v1 StatefulSet s-1", Some("u"))]
    #[case("apps.kruise.io/v1beta1 StatefulSet a-1", Some("u"))]
    #[case("apps.kruise.io/v1alpha1 CloneSet c-1", Some("u"))]
    #[case("apps.kruise.io/v1alpha1 CloneSet c-2", None)]
    #[case("apps.kruise.io/v1alpha1 CloneSet c-9", None)]
    #[case("batch/v1 Job j", None)]
    #[case("", None)]
    fn pods_of_sets(#[case] owner: &str, #[case] expect: Option<&str>) {
        let owners = object("default", "p", owner, None)["metadata"]["ownerReferences"].clone();
        let pod = TestPod::new("p").set("/metadata/ownerReferences", owners);
        let (finder, labelled) = (finder(), pod.clone().label(labels::SUBSET_NAME, "a"));
        let found = finder.set_of(&labelled.build());
        assert_eq!(found.map(|key| key.name).as_deref(), expect);
        assert_eq!(finder.set_of(&pod.build()), None, "a pod without a subset");
    }
}
