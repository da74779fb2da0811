//! Taking fields out of an object.

use super::field_set::FieldSet;
use super::path::PathElement;
use super::types::{Shape, Type};
use shared_json::{Array, Map, Value};

/// The value without the fields of a set. A map or list that loses its last part becomes null, and stays, empty, if it lost
/// parts of its parts, as the real server has it.
pub(super) fn remove_fields(of: Type<'_>, value: Value, fields: &FieldSet) -> Value {
    match (of.shape(Some(&value)), value) {
        (Shape::Map(shape), Value::Object(map)) if !shape.atomic => {
            let mut left = Map::new();
            let mut entered = false;
            for (name, value) in map {
                let element = PathElement::Field(name.clone());
                if fields.has(&element) {
                    continue;
                }
                let value = match (fields.below(&element), shape.child(&name)) {
                    (Some(below), Some(of)) => {
                        entered = true;
                        emptied(of, value, below)
                    }
                    _ => value,
                };
                left.insert(name, value);
            }
            if left.is_empty() && !entered {
                Value::Null
            } else {
                Value::Object(left)
            }
        }
        (Shape::List(list), Value::Array(items)) if !list.atomic() => {
            let mut left = Vec::with_capacity(items.len());
            let mut entered = false;
            for item in items {
                let Ok(element) = list.element(&item) else {
                    left.push(item);
                    continue;
                };
                if fields.has(&element) {
                    continue;
                }
                left.push(match fields.below(&element) {
                    Some(below) => {
                        entered = true;
                        emptied(list.items(), item, below)
                    }
                    None => item,
                });
            }
            if left.is_empty() && !entered {
                Value::Null
            } else {
                Value::from(left)
            }
        }
        (Shape::Scalar(_), value) => value,
        _ => Value::Null,
    }
}

/// A part without some of its own parts: a map or list stays one.
fn emptied(of: Type<'_>, value: Value, below: &FieldSet) -> Value {
    let empty = match &value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Array::new()),
        _ => Value::Null,
    };
    match remove_fields(of, value, below) {
        Value::Null => empty,
        left => left,
    }
}
