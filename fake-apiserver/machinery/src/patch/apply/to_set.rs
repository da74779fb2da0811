//! The set of fields in an applied configuration.

use super::field_set::FieldSet;
use super::path::PathElement;
use super::types::{List, MapShape, Shape, Type};
use shared_json::{Map, Value};
use std::collections::BTreeSet;

/// The fields that a value sets: every scalar, every part that is owned as one, every item of a keyed list, every key of a
/// map, and every field that is null or an empty object.
pub(super) fn to_field_set(of: Type<'_>, value: &Value) -> FieldSet {
    let mut walker = Walker {
        path: Vec::new(),
        set: FieldSet::default(),
    };
    walker.walk(of, value);
    walker.set
}

struct Walker {
    path: Vec<PathElement>,
    set: FieldSet,
}

impl Walker {
    fn walk(&mut self, of: Type<'_>, value: &Value) {
        match (of.shape(Some(value)), value) {
            (Shape::Scalar(_), _) => self.insert(),
            (Shape::List(list), _) if list.atomic() => self.insert(),
            (Shape::Map(map), _) if map.atomic => self.insert(),
            (Shape::List(list), Value::Array(items)) => self.walk_items(list, items),
            (Shape::Map(shape), Value::Object(map)) => self.walk_fields(shape, map),
            _ => {}
        }
    }

    fn insert(&mut self) {
        self.set.insert(&self.path);
    }

    fn walk_items(&mut self, list: List<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        let mut twice = BTreeSet::new();
        let elements: Vec<Option<PathElement>> = items.iter().map(|item| list.element(item).ok()).collect();
        for element in elements.iter().flatten() {
            if !seen.insert(element) {
                twice.insert(element);
            }
        }
        for (item, element) in items.iter().zip(&elements) {
            let Some(element) = element else { continue };
            self.path.push(element.clone());
            // Items that share a key are owned as one.
            if !twice.contains(element) {
                self.walk(list.items(), item);
            }
            self.insert();
            self.path.pop();
        }
    }

    fn walk_fields(&mut self, shape: MapShape<'_>, map: &Map) {
        for (name, value) in map {
            self.path.push(PathElement::Field(name.clone()));
            if let Some(of) = shape.child(name) {
                self.walk(of, value);
            }
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            if empty || !shape.declares(name) {
                self.insert();
            }
            self.path.pop();
        }
    }
}
