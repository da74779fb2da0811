//! What changed between two versions of an object, field by field.

use super::field_set::FieldSet;
use super::path::PathElement;
use super::types::{List, MapShape, Shape, Type, same};
use shared_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that differ. No field is in two of the sets.
#[derive(Debug, Clone, Default)]
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
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    pub(super) fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares two values of a type. Parts that are equal are not walked.
pub(super) fn compare(of: Type<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walker = Walker {
        path: Vec::new(),
        found: Comparison::default(),
    };
    walker.walk(of, Some(old), Some(new));
    walker.found
}

struct Walker {
    path: Vec<PathElement>,
    found: Comparison,
}

impl Walker {
    fn walk(&mut self, of: Type<'_>, old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        let (before, after) = (of.shape(old), of.shape(new));
        let leaf = match (old, new) {
            (_, None) => self.walk_shape(before, old, new),
            (None, _) => self.walk_shape(after, old, new),
            _ if kind(before) == kind(after) => self.walk_shape(after, old, new),
            // A value that was one kind of thing and now is another: both ways of looking at it count.
            _ => {
                self.walk_shape(before, old, new);
                self.walk_shape(after, old, new)
            }
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// True if the value was taken as a whole.
    fn walk_shape(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        match shape {
            Shape::Scalar(_) => self.leaf(old, new),
            Shape::List(list) => {
                let (before, after) = (items(old), items(new));
                // Two empty lists still differ if one is null.
                if list.atomic() || (before.is_empty() && after.is_empty()) {
                    return self.leaf(old, new);
                }
                self.walk_items(list, before, after);
                false
            }
            Shape::Map(map) => {
                let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
                if map.atomic || empty {
                    return self.leaf(old, new);
                }
                self.walk_fields(map, before, after);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn walk_fields(
        &mut self,
        shape: MapShape<'_>,
        before: Option<&Map<String, Value>>,
        after: Option<&Map<String, Value>>,
    ) {
        let old = |name: &str| before.and_then(|map| map.get(name));
        let new = |name: &str| after.and_then(|map| map.get(name));
        let gone = before
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| new(name).is_none());
        for name in after.into_iter().flat_map(Map::keys).chain(gone) {
            if let Some(of) = shape.child(name)
                && old(name) != new(name)
            {
                self.path.push(PathElement::field(name));
                self.walk(of, old(name), new(name));
                self.path.pop();
            }
        }
    }

    fn walk_items(&mut self, list: List<'_>, before: &[Value], after: &[Value]) {
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
            self.path.push(element);
            self.walk_pair(list, &old, &new);
            self.path.pop();
        }
    }

    /// Compares the items with one key, of which there should be at most one on each side; several count as one whole.
    fn walk_pair(&mut self, list: List<'_>, old: &[&Value], new: &[&Value]) {
        match (old, new) {
            ([] | [_], [] | [_]) => self.walk(list.items(), old.first().copied(), new.first().copied()),
            ([_, _, ..], [_, _, ..]) => {
                if old != new {
                    self.found.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                self.walk(list.items(), None, new.first().copied());
                self.found.removed.insert(&self.path);
            }
            _ => {
                self.walk(list.items(), old.first().copied(), None);
                self.found.added.insert(&self.path);
            }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn kind(shape: Shape<'_>) -> u8 {
    match shape {
        Shape::Scalar(_) => 0,
        Shape::List(_) => 1,
        Shape::Map(_) => 2,
    }
}
