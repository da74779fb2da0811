//! Indexes of a table by the text in a field: a list or watch of one text looks at no other objects.

use std::collections::{BTreeMap, BTreeSet};

use machinery::keys::ObjectKey;
use shared_json::{Text, Value};

use super::event::{Event, EventKind};
use super::scope::{Scope, field};

/// The one field by which there is an index, as in the real server's cache: the node of a pod.
const INDEXED: &str = "spec.nodeName";

/// The keys of a table's objects by the text of the field.
#[derive(Default)]
pub(super) struct Index(BTreeMap<Text, BTreeSet<ObjectKey>>);

impl Scope {
    /// The text of the field by which there is an index, if this is about it.
    pub(super) fn indexed(&self) -> Option<&str> {
        match self {
            Self::Field(INDEXED, text) => Some(text),
            _ => None,
        }
    }

    /// The objects with this text in the indexed field.
    pub(super) fn of_index(text: &str) -> Self {
        Self::Field(INDEXED, text.to_owned())
    }
}

impl Index {
    /// Another object, which was not there before.
    pub(super) fn add(&mut self, key: &ObjectKey, object: &Value) {
        self.insert(key, field(object, INDEXED));
    }

    /// Follows a change. Gives the text that no object has any more.
    pub(super) fn follow(&mut self, event: &Event) -> Option<Text> {
        let key = &event.object.key;
        let now = (event.kind != EventKind::Deleted).then(|| field(&event.object.value, INDEXED));
        match &event.previous {
            Some(previous) => previous
                .value
                .with(|previous| self.move_to(key, Some(field(previous, INDEXED)), now)),
            None => self.move_to(key, None, now),
        }
    }

    fn move_to(&mut self, key: &ObjectKey, before: Option<&str>, now: Option<&str>) -> Option<Text> {
        if now == before {
            return None;
        }
        if let Some(now) = now {
            self.insert(key, now);
        }
        let keys = self.0.get_mut(before?)?;
        keys.remove(key);
        if !keys.is_empty() {
            return None;
        }
        self.0.remove_entry(before?).map(|(text, _)| text)
    }

    /// The keys of the objects that have a text, in their order.
    pub(super) fn keys(&self, text: &str) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(text).into_iter().flatten()
    }

    /// Whether any object has a text.
    pub(super) fn has(&self, text: &str) -> bool {
        self.0.contains_key(text)
    }

    fn insert(&mut self, key: &ObjectKey, text: &str) {
        if let Some(keys) = self.0.get_mut(text) {
            keys.insert(key.clone());
        } else {
            self.0.insert(text.into(), BTreeSet::from([key.clone()]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use machinery::keys::{GroupResource, Revision};
    use shared_json::json;

    use super::*;
    use crate::{Change, Store};

    /// After any mix of creates, deletes and moves an indexed list equals a full scan, and a watch that
    /// begins again gets the events it missed.
    #[test]
    fn finds_what_a_look_at_all_finds() {
        let pods = GroupResource::new("", "pods");
        let store = Arc::new(Store::new());
        let nodes = ["", "n0", "n1", "n2"];
        let scope = |node: &str| Scope::Field(INDEXED, node.to_owned());
        for step in 0..400_usize {
            // A walk that comes by everything: 7, 11 and 13 have nothing in common with what they go round.
            let (namespace, name) = (["a", "b"][step * 7 % 2], format!("p{}", step * 11 % 9));
            let key = ObjectKey::new(namespace, &name);
            let last = store.get(&pods, &key);
            let before = last.as_ref().map(|stored| stored.revision);
            let change = match last {
                Some(last) if step % 5 == 0 => Change::Delete(last.value.clone()),
                _ => Change::Put(json!({
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {"nodeName": nodes[step * 13 / 3 % 4]},
                })),
            };
            store.commit(&pods, &key, before, change).expect("a commit");
            let all = store.list(&pods, None, None, None).expect("a list").items;
            for (node, namespace) in nodes.iter().flat_map(|node| [(node, None), (node, Some("a"))]) {
                let wanted = all.iter().filter(|stored| {
                    field(&stored.value, INDEXED) == *node
                        && namespace.is_none_or(|namespace| stored.key.namespace == *namespace)
                });
                let found = store
                    .list_indexed(&pods, &scope(node), namespace)
                    .expect("an index");
                let keys: Vec<&ObjectKey> = found.items.iter().map(|stored| &stored.key).collect();
                assert_eq!(
                    keys,
                    wanted.map(|stored| &stored.key).collect::<Vec<_>>(),
                    "{node} {step}"
                );
            }
            if step % 10 == 0 {
                let mut again = store
                    .watch(&pods, scope("n1"), Revision(0), false)
                    .expect("a watch");
                let mut told = Vec::new();
                while let Some(event) = again.try_next().expect("all of it") {
                    told.push(event.revision);
                }
                let mut everything = store
                    .watch(&pods, Scope::All, Revision(0), false)
                    .expect("a watch");
                let mut wanted = Vec::new();
                while let Some(event) = everything.try_next().expect("all of it") {
                    wanted.extend(scope("n1").concerns(&event).then_some(event.revision));
                }
                assert_eq!(told, wanted, "{step}");
            }
        }
    }

    #[test]
    fn one_name_is_one_object() {
        let store = Arc::new(Store::new());
        let put = |table: &GroupResource, namespace: &str, name: &str| {
            let object = json!({"metadata": {"name": name, "namespace": namespace}});
            let key = ObjectKey::new(namespace, name);
            store
                .commit(table, &key, None, Change::Put(object))
                .expect("a commit");
        };
        let (pods, nodes) = (GroupResource::new("", "pods"), GroupResource::new("", "nodes"));
        put(&pods, "a", "x");
        put(&pods, "b", "x");
        put(&nodes, "", "x");
        put(&nodes, "", "y");
        let count = |table: &GroupResource, name: &str, namespace: Option<&str>| {
            let scope = Scope::Field("metadata.name", name.to_owned());
            store
                .list_indexed(table, &scope, namespace)
                .map(|list| list.items.len())
        };
        assert_eq!(count(&pods, "x", Some("a")), Some(1));
        assert_eq!(count(&pods, "y", Some("a")), Some(0));
        assert_eq!(count(&pods, "x", None), None, "it may be in any namespace");
        assert_eq!(count(&nodes, "x", None), Some(1));
        assert_eq!(count(&nodes, "z", None), Some(0));
    }
}
