//! Which objects of a table have which text in a field: who asks for those of one text looks at no others.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::{Text, Value};

use super::event::{Event, EventKind};
use super::key::ObjectKey;
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

    /// What has this text in the field by which there is an index.
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
