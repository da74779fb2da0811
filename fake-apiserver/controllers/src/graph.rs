//! The graph of owners and dependents: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::ApiResource;
use machinery::meta::ObjectMeta;
use shared_json::{Text, Value};

/// The collector's knowledge of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub kind: Arc<ApiResource>,
    pub namespace: Text,
    pub name: Text,
    pub owners: Vec<Owner>,
    pub finalizers: Vec<String>,
    pub terminating: bool,
    /// The resource version that all this is of.
    pub version: Text,
}

/// An entry of `ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub uid: String,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub blocks: bool,
    /// The entry as it is written.
    pub entry: Value,
}

impl Node {
    /// Whether an entry of `ownerReferences` names this object, in whichever version.
    pub(super) fn is_named_by(&self, owner: &Owner) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind.group == group && self.kind.kind == owner.kind && self.name == owner.name
    }
}

/// The uid of an object, and the entry of its owner that is in another namespace.
pub(super) type Stranger = (String, Owner);

/// Whether an owner in a namespace is invalid for a dependent in another one.
fn is_elsewhere(owner: &str, dependent: &str) -> bool {
    !owner.is_empty() && owner != dependent
}

/// The objects and their owners, by uid. Its cost follows the change, not the number of objects.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Text, Arc<Node>>,
    dependents: BTreeMap<String, BTreeSet<String>>,
}

pub(super) fn owners_of(object: &Value) -> Vec<Owner> {
    let list = object
        .metadata()
        .and_then(|meta| meta.get("ownerReferences"))
        .and_then(Value::as_array);
    let text = |owner: &Value, field: &str| {
        owner
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    list.into_iter()
        .flatten()
        .map(|owner| Owner {
            uid: text(owner, "uid"),
            api_version: text(owner, "apiVersion"),
            kind: text(owner, "kind"),
            name: text(owner, "name"),
            blocks: owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true),
            entry: owner.clone(),
        })
        .collect()
}

impl Graph {
    /// Takes in an object's present version. Returns dependents whose owner turns out to be in another namespace.
    pub(super) fn put(&mut self, kind: &Arc<ApiResource>, object: &Value) -> Vec<Stranger> {
        let uid = object.uid().to_owned();
        self.unlink(&uid);
        let owners = owners_of(object);
        let before = self.nodes.get(uid.as_str()).map_or(&[][..], |node| &node.owners);
        let own = owners
            .iter()
            .filter(|owner| !before.iter().any(|one| one.uid == owner.uid))
            .find(|owner| {
                let found = self.nodes.get(owner.uid.as_str());
                found.is_some_and(|found| is_elsewhere(&found.namespace, object.namespace()))
            });
        let mut strangers: Vec<Stranger> = own
            .map(|owner| (uid.clone(), owner.clone()))
            .into_iter()
            .collect();
        if !self.nodes.contains_key(uid.as_str()) {
            strangers.extend(self.strangers_to(&uid, object.namespace()));
        }
        for owner in &owners {
            self.dependents
                .entry(owner.uid.clone())
                .or_default()
                .insert(uid.clone());
        }
        let node = Node {
            kind: Arc::clone(kind),
            namespace: object.meta_text("namespace"),
            name: object.meta_text("name"),
            owners,
            finalizers: object.finalizers().into_iter().map(str::to_owned).collect(),
            terminating: object.is_terminating(),
            version: object.meta_text("resourceVersion"),
        };
        self.nodes.insert(object.meta_text("uid"), Arc::new(node));
        strangers
    }

    /// The dependents outside of its namespace that named an owner before it was seen.
    fn strangers_to(&self, uid: &str, namespace: &str) -> Vec<Stranger> {
        let dependents = self.dependents_of(uid).into_iter().filter_map(|dependent| {
            let node = self.nodes.get(dependent.as_str())?;
            let owner = node.owners.iter().find(|owner| owner.uid == uid)?;
            is_elsewhere(namespace, &node.namespace).then(|| (dependent, owner.clone()))
        });
        dependents.collect()
    }

    fn unlink(&mut self, uid: &str) {
        let Some(node) = self.nodes.get(uid) else { return };
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Removes a deleted object. Returns its dependents.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<String> {
        self.unlink(uid);
        self.nodes.remove(uid);
        self.dependents_of(uid)
    }

    /// Takes an owner out of an object.
    pub(super) fn disown(&mut self, uid: &str, owner: &str) {
        self.unlink(uid);
        let Some(node) = self.nodes.get_mut(uid).map(Arc::make_mut) else {
            return;
        };
        node.owners.retain(|one| one.uid != owner);
        for one in &node.owners {
            self.dependents
                .entry(one.uid.clone())
                .or_default()
                .insert(uid.to_owned());
        }
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Arc<Node>> {
        self.nodes.get(uid)
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.nodes.contains_key(uid)
    }

    pub(super) fn dependents_of(&self, uid: &str) -> Vec<String> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use shared_json::json;

    use super::*;

    #[test]
    fn tells_of_owners_in_other_namespaces_once() {
        let kind = Arc::new(ApiResource::from_gvk(&GroupVersionKind::gvk(
            "",
            "v1",
            "ConfigMap",
        )));
        let object = |uid: &str, namespace: &str, owners: &[&str]| {
            let owners: Vec<Value> = owners.iter().map(|uid| json!({"uid": uid})).collect();
            json!({"metadata": {"uid": uid, "namespace": namespace, "ownerReferences": owners}})
        };
        let mut graph = Graph::default();
        let mut check = |put: Value, expected: &[(&str, &str)]| {
            let found = graph.put(&kind, &put);
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(uid, owner)| (uid.as_str(), owner.uid.as_str()))
                .collect();
            assert_eq!(found, expected, "{put}");
        };
        check(object("a", "x", &[]), &[]);
        check(object("cluster", "", &[]), &[]);
        check(object("same", "x", &["a"]), &[]);
        check(object("of-cluster", "y", &["cluster"]), &[]);
        check(object("other", "y", &["a"]), &[("other", "a")]);
        check(object("other", "y", &["a"]), &[]);
        check(object("other", "y", &["cluster", "a"]), &[]);
        // Its owner is seen later.
        check(object("early", "y", &["late"]), &[]);
        check(object("late", "x", &[]), &[("early", "late")]);
        check(object("late", "x", &[]), &[]);
        // Of several only the first is told of.
        check(object("two", "z", &["a", "late"]), &[("two", "a")]);
        check(object("without", "", &["a"]), &[("without", "a")]);
    }

    #[test]
    fn follows_owners() {
        let kind = Arc::new(ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")));
        let object = |uid: &str, owners: &[&str]| {
            let owners: Vec<Value> = owners
                .iter()
                .map(|uid| json!({"uid": uid, "name": uid}))
                .collect();
            json!({"metadata": {"uid": uid, "name": uid, "ownerReferences": owners}})
        };
        let mut graph = Graph::default();
        graph.put(&kind, &object("child", &["a", "b"]));
        graph.put(&kind, &object("a", &[]));
        assert!(graph.contains("a") && !graph.contains("b"));
        assert_eq!(graph.dependents_of("b"), ["child"]);
        graph.put(&kind, &object("child", &["a"]));
        assert!(graph.dependents_of("b").is_empty());
        graph.disown("child", "x");
        assert_eq!(graph.dependents_of("a"), ["child"]);
        graph.disown("child", "a");
        assert!(graph.remove("a").is_empty());
    }
}
