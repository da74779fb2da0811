//! The changes of a cluster's objects, in order: read from a recording, or watched live.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared_json::{Array, Value};

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// When, in milliseconds since the history began.
    pub at_ms: i64,
    /// The resource, as recordings name it: `pods`, `events`, `clonesets`.
    pub resource: String,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The object after the change; its last state for a deletion.
    pub object: Arc<Value>,
}

/// An object's resource, namespace and name.
pub type Id = (String, String, String);

impl Change {
    /// Whose change it is.
    #[must_use]
    pub fn id(&self) -> Id {
        (
            self.resource.clone(),
            text(&self.object, "/metadata/namespace"),
            self.name(),
        )
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> String {
        text(&self.object, "/metadata/name")
    }
}

/// The text at a JSON pointer; empty if there is none.
#[must_use]
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The items at a JSON pointer; none if there is no list.
#[must_use]
pub(crate) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}

/// The number at a JSON pointer; 0 if there is none.
#[must_use]
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The objects that are there at some moment.
#[derive(Debug, Clone, Default)]
pub struct State(BTreeMap<Id, Arc<Value>>);

impl State {
    /// The state after `changes`.
    #[must_use]
    pub fn after(changes: &[Change]) -> Self {
        let mut state = Self::default();
        for change in changes {
            state.apply(change);
        }
        state
    }

    /// Takes in one change.
    pub fn apply(&mut self, change: &Change) {
        match change.kind {
            ChangeKind::Deleted => self.0.remove(&change.id()),
            ChangeKind::Added | ChangeKind::Modified => {
                self.0.insert(change.id(), Arc::clone(&change.object))
            }
        };
    }

    /// The objects of a resource, by namespace and name.
    pub fn of<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0
            .iter()
            .filter(move |((res, _, _), _)| res == resource)
            .map(|(_, object)| &**object)
    }
}

/// The part of a history that belongs to one step.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    /// Everything before the step.
    pub before: &'a [Change],
    /// The changes during the step.
    pub during: &'a [Change],
}

/// Cuts a history at a time: the index of the first change from then on.
#[must_use]
pub fn cut(history: &[Change], at_ms: i64) -> usize {
    history.partition_point(|change| change.at_ms < at_ms)
}
