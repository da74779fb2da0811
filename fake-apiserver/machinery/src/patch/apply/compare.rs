//! The changes between two versions of an object, field by field.

use super::field_set::{FieldSet, Node};
use super::path::PathElement;
use super::types::{List, MapShape, Shape, Type, same};
use super::{change_key, memo};
use shared_json::{Array, Map, Name, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The fields that differ. No field is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    /// Without these fields and all that is below them.
    pub(super) fn without(self, fields: &FieldSet) -> Comparison {
        if fields.is_empty() {
            return self;
        }
        Comparison {
            removed: memo::recursive_difference(self.removed, fields),
            modified: memo::recursive_difference(self.modified, fields),
            added: memo::recursive_difference(self.added, fields),
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares two values of a type. Parts that are equal are not walked.
pub(super) fn compare(of: Type<'_>, old: &Value, new: &Value) -> Comparison {
    change_key::recall(of, old, new, || {
        let found = walk(of, Some(old), Some(new));
        Comparison {
            removed: found.removed.children,
            modified: found.modified.children,
            added: found.added.children,
        }
    })
}

/// The differences at a place and below it.
#[derive(Default)]
struct Found {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Found {
    /// Takes the differences at a step and below it.
    fn take(&mut self, element: &PathElement, below: Found) {
        self.removed.children.add(element, below.removed);
        self.modified.children.add(element, below.modified);
        self.added.children.add(element, below.added);
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.added.member = true,
            (_, None) => self.removed.member = true,
            (Some(old), Some(new)) => self.modified.member |= !same(old, new),
        }
        true
    }
}

fn walk(of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    if old == new {
        return Found::default();
    }
    walk_changed(of, old, new)
}

/// The same for values that are not equal, or objects that may not be.
fn walk_changed(of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Found {
    let mut found = Found::default();
    let (before, after) = (of.shape(old), of.shape(new));
    let leaf = match (old, new) {
        (_, None) => walk_shape(before, old, new, &mut found),
        (None, _) => walk_shape(after, old, new, &mut found),
        _ if kind(before) == kind(after) => walk_shape(after, old, new, &mut found),
        // A value that was one kind of thing and now is another: both ways of looking at it count.
        _ => {
            walk_shape(before, old, new, &mut found);
            walk_shape(after, old, new, &mut found)
        }
    };
    if !leaf {
        found.added.member |= old.is_none();
        found.removed.member |= old.is_some() && new.is_none();
    }
    found
}

/// True if the value was taken as a whole.
fn walk_shape(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut Found) -> bool {
    match shape {
        Shape::Scalar(_) => found.leaf(old, new),
        Shape::List(list) => {
            let (before, after) = (items(old), items(new));
            // Two empty lists still differ if one is null.
            if list.atomic() || (before.is_empty() && after.is_empty()) {
                return found.leaf(old, new);
            }
            walk_items(list, before, after, found);
            false
        }
        Shape::Map(map) => {
            let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
            if map.atomic || empty {
                return found.leaf(old, new);
            }
            walk_fields(map, before, after, found);
            false
        }
    }
}

fn walk_fields(shape: MapShape<'_>, before: Option<&Map>, after: Option<&Map>, found: &mut Found) {
    for (name, old, new) in differing(before, after) {
        if let Some(of) = shape.child(name) {
            found.take(&PathElement::Field(name.clone()), walk_changed(of, old, new));
        }
    }
}

/// The fields of two objects whose values are not known to be equal, in order.
pub(super) fn differing<'v>(
    before: Option<&'v Map>,
    after: Option<&'v Map>,
) -> impl Iterator<Item = (&'v Name, Option<&'v Value>, Option<&'v Value>)> {
    // Both are ordered by name.
    let mut before = before.into_iter().flatten().peekable();
    let mut after = after.into_iter().flatten().peekable();
    let pairs = std::iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (Some((one, _)), Some((other, _))) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let old = before.next_if(|_| order.is_le());
        let new = after.next_if(|_| order.is_ge());
        let (name, _) = new.or(old)?;
        Some((name, old.map(|(_, value)| value), new.map(|(_, value)| value)))
    });
    pairs.filter(|(_, old, new)| differ(*old, *new))
}

/// Whether two values are not equal; objects may be, which walking them shows.
fn differ(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => !old.is_same(new),
        (old, new) => old != new,
    }
}

fn walk_items(list: List<'_>, before: &[Value], after: &[Value], found: &mut Found) {
    let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in before {
        if let Ok(element) = list.element(item) {
            pairs.entry(element).or_default().0.push(item);
        }
    }
    for item in after {
        if let Ok(element) = list.element(item) {
            pairs.entry(element).or_default().1.push(item);
        }
    }
    for (element, (old, new)) in pairs {
        found.take(&element, walk_pair(list, &old, &new));
    }
}

/// Compares the items with one key, of which there should be at most one on each side; several count as one whole.
fn walk_pair(list: List<'_>, old: &[&Value], new: &[&Value]) -> Found {
    let of = list.items();
    match (old, new) {
        ([] | [_], [] | [_]) => walk(of, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) => Found {
            modified: Node {
                member: old != new,
                ..Node::default()
            },
            ..Found::default()
        },
        ([_, _, ..], _) => {
            let mut found = walk(of, None, new.first().copied());
            found.removed.member = true;
            found
        }
        _ => {
            let mut found = walk(of, old.first().copied(), None);
            found.added.member = true;
            found
        }
    }
}

pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Array::as_slice)
}

pub(super) fn kind(shape: Shape<'_>) -> u8 {
    match shape {
        Shape::Scalar(_) => 0,
        Shape::List(_) => 1,
        Shape::Map(_) => 2,
    }
}
