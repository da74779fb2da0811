//! The part of a table that a watcher covers, so that events elsewhere cost it nothing.

use std::collections::{BTreeMap, VecDeque};

use machinery::keys::Revision;
use machinery::meta::at;
use shared_json::Value;

use super::bell::{Bell, Listener};
use super::event::Event;

/// The part of a table that a watcher covers. A watcher gets every change there, and few from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every object.
    All,
    /// The objects of a namespace.
    Namespace(String),
    /// The objects in which the field at a path has this text; an absent one is empty.
    Field(&'static str, String),
}

/// The changes within one scope.
struct Part {
    /// Their revisions, oldest first; some may have left the log.
    revisions: VecDeque<Revision>,
    /// The newest one that was taken off `revisions`.
    dropped: Revision,
    bell: Bell,
    watchers: usize,
}

/// The parts of a table that are watched.
#[derive(Default)]
pub(super) struct Parts {
    by_namespace: BTreeMap<String, Part>,
    by_field: BTreeMap<&'static str, BTreeMap<String, Part>>,
}

pub(super) fn field<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

impl Scope {
    /// Whether a change concerns it: where the object was, or where it is.
    pub(super) fn concerns(&self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => event.object.key.namespace == *namespace,
            Self::Field(path, text) => {
                let is = |object: &Value| field(object, path) == text;
                is(&event.object.value)
                    || event
                        .previous
                        .as_ref()
                        .is_some_and(|previous| is(&previous.value))
            }
        }
    }
}

impl Parts {
    fn part(&self, scope: &Scope) -> Option<&Part> {
        match scope {
            Scope::All => None,
            Scope::Namespace(namespace) => self.by_namespace.get(namespace),
            Scope::Field(path, text) => self.by_field.get(path)?.get(text),
        }
    }

    fn part_mut(&mut self, scope: &Scope) -> Option<&mut Part> {
        match scope {
            Scope::All => None,
            Scope::Namespace(namespace) => self.by_namespace.get_mut(namespace),
            Scope::Field(path, text) => self.by_field.get_mut(path)?.get_mut(text),
        }
    }

    /// Adds a watcher of a part. `known`: the revisions of the part's changes so far, computed only if the part had no watcher.
    pub(super) fn join(
        &mut self,
        scope: &Scope,
        known: impl FnOnce() -> VecDeque<Revision>,
    ) -> Option<Listener> {
        let slot = match scope {
            Scope::All => return None,
            Scope::Namespace(namespace) => self.by_namespace.entry(namespace.clone()),
            Scope::Field(path, text) => self.by_field.entry(path).or_default().entry(text.clone()),
        };
        let part = slot.or_insert_with(|| Part {
            revisions: known(),
            dropped: Revision::default(),
            bell: Bell::default(),
            watchers: 0,
        });
        part.watchers += 1;
        Some(part.bell.listener())
    }

    /// Removes a watcher of a part. With `stay` the part's changes are still recorded, so that the next watcher finds them.
    pub(super) fn leave(&mut self, scope: &Scope, stay: bool) {
        if let Some(part) = self.part_mut(scope) {
            part.watchers = part.watchers.saturating_sub(1);
        }
        if !stay {
            self.forget(scope);
        }
    }

    /// Forgets a part, unless it has a watcher.
    pub(super) fn forget(&mut self, scope: &Scope) {
        if self.part(scope).is_none_or(|part| part.watchers > 0) {
            return;
        }
        match scope {
            Scope::All => {}
            Scope::Namespace(namespace) => {
                self.by_namespace.remove(namespace);
            }
            Scope::Field(path, text) => {
                if let Some(parts) = self.by_field.get_mut(path) {
                    parts.remove(text);
                    if parts.is_empty() {
                        self.by_field.remove(path);
                    }
                }
            }
        }
    }

    /// Wakes the watchers that a change concerns. `compacted`: the end of the compacted log.
    pub(super) fn tell(&mut self, event: &Event, compacted: Revision) {
        if let Some(part) = self.by_namespace.get_mut(event.object.key.namespace.as_str()) {
            part.tell(event.revision, compacted);
        }
        for (path, parts) in &mut self.by_field {
            let now = field(&event.object.value, path);
            if let Some(part) = parts.get_mut(now) {
                part.tell(event.revision, compacted);
            }
            let before = event
                .previous
                .as_ref()
                .map(|previous| field(&previous.value, path));
            if let Some(part) = before
                .filter(|before| *before != now)
                .and_then(|before| parts.get_mut(before))
            {
                part.tell(event.revision, compacted);
            }
        }
    }

    /// Wakes everyone.
    pub(super) fn wake(&self) {
        let fields = self.by_field.values().flat_map(BTreeMap::values);
        for part in self.by_namespace.values().chain(fields) {
            part.bell.ring();
        }
    }

    /// The revisions of the changes in a part after `revision`, oldest first; none if the log lacks one of them.
    pub(super) fn after(
        &self,
        scope: &Scope,
        revision: Revision,
        compacted: Revision,
    ) -> Option<impl Iterator<Item = Revision>> {
        let part = self.part(scope)?;
        let start = part.revisions.partition_point(|known| *known <= revision);
        let first = part.revisions.get(start);
        let lost = part.dropped > revision || first.is_some_and(|first| *first <= compacted);
        (!lost).then(|| part.revisions.range(start..).copied())
    }
}

impl Part {
    fn tell(&mut self, revision: Revision, compacted: Revision) {
        while self.revisions.front().is_some_and(|old| *old <= compacted) {
            self.dropped = self.revisions.pop_front().unwrap_or(self.dropped);
        }
        self.revisions.push_back(revision);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use machinery::keys::{GroupResource, ObjectKey};
    use rstest::rstest;
    use shared_json::json;

    use super::*;
    use crate::{Change, Store};

    fn pods() -> GroupResource {
        GroupResource::new("", "pods")
    }

    fn put(store: &Store, namespace: &str, name: &str, node: &str) -> Revision {
        let key = ObjectKey::new(namespace, name);
        let before = store.get(&pods(), &key).map(|stored| stored.revision);
        let pod = json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"nodeName": node}});
        let stored = store.commit(&pods(), &key, before, Change::Put(pod));
        stored.expect("a commit").revision
    }

    fn delete(store: &Store, namespace: &str, name: &str) {
        let key = ObjectKey::new(namespace, name);
        let last = store.get(&pods(), &key).expect("a pod");
        let change = Change::Delete(last.value.clone());
        store
            .commit(&pods(), &key, Some(last.revision), change)
            .expect("a commit");
    }

    /// Revisions 1 to 6; a watcher from 0, from the start or only after it all, sees the same.
    #[rstest]
    #[case(Scope::All, &[1, 2, 3, 4, 5, 6])]
    #[case(Scope::Namespace("a".to_owned()), &[1, 3, 4, 6])]
    #[case(Scope::Namespace("c".to_owned()), &[])]
    #[case(Scope::Field("spec.nodeName", "n1".to_owned()), &[2, 3, 4, 5])]
    #[case(Scope::Field("spec.nodeName", "n2".to_owned()), &[4, 6])]
    #[case(Scope::Field("spec.nodeName", String::new()), &[1, 3])]
    #[case(Scope::Field("metadata.name", "y".to_owned()), &[2, 5])]
    fn a_watcher_sees_its_part(#[case] scope: Scope, #[case] expected: &[u64]) {
        let store = Arc::new(Store::new());
        let mut early = store
            .watch(&pods(), scope.clone(), Revision(0), false)
            .expect("a watch");
        put(&store, "a", "x", "");
        put(&store, "b", "y", "n1");
        put(&store, "a", "x", "n1");
        put(&store, "a", "x", "n2");
        delete(&store, "b", "y");
        delete(&store, "a", "x");
        let mut late = store.watch(&pods(), scope, Revision(0), false).expect("a watch");
        for watcher in [&mut early, &mut late] {
            let mut seen = Vec::new();
            while let Some(event) = watcher.try_next().expect("all events are there") {
                seen.push(event.revision.0);
            }
            assert_eq!(seen, expected);
            assert_eq!(watcher.position(), Revision(6), "all up to now has been seen");
        }
    }

    #[test]
    fn only_what_is_gone_in_its_part_is_missed() {
        let store = Arc::new(Store::new());
        let of = |node: &str| Scope::Field("spec.nodeName", node.to_owned());
        let watch = |node: &str| {
            store
                .watch(&pods(), of(node), Revision(0), false)
                .expect("a watch")
        };
        let (mut idle, mut slow) = (watch("n1"), watch("n2"));
        for _ in 0..3 {
            put(&store, "a", "x", "n2");
        }
        store.compact(Revision(2));
        assert!(slow.try_next().is_err());
        assert!(idle.try_next().expect("nothing was missed").is_none());
        let last = put(&store, "a", "z", "n1");
        let event = idle.try_next().expect("nothing was missed").expect("an event");
        assert_eq!(event.revision, last);
    }
}
