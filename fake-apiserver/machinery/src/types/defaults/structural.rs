//! Defaults of custom resources.

use crate::types::schema::{Kind, Schema};
use shared_json::Value;

/// Fills in the schema's defaults, from the outside in, and, with `drops_nulls`, drops nulls in fields that are not nullable.
pub(super) fn apply(schema: &Schema, value: &mut Value, drops_nulls: bool) {
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            map.retain(
                |name, value| match object.fields.named(name).filter(|_| drops_nulls) {
                    Some(field) => {
                        !value.is_null() || field.schema.nullable || field.schema.default.is_some()
                    }
                    None => true,
                },
            );
            for (name, field) in &object.fields {
                let Some(default) = &field.schema.default else {
                    continue;
                };
                match map.get_mut(name) {
                    None => {
                        map.insert(name.clone(), default.clone());
                    }
                    Some(value) if value.is_null() && !field.schema.nullable => *value = default.clone(),
                    Some(_) => {}
                }
            }
            for (name, value) in map {
                match (object.fields.named(name), &object.additional) {
                    (Some(field), _) if field.schema.name.is_some() => {}
                    (Some(field), _) => apply(&field.schema, value, drops_nulls),
                    (None, Some(values)) => part(values, value, drops_nulls),
                    (None, None) => {}
                }
            }
        }
        (Kind::Array(array), Value::Array(items)) => items
            .iter_mut()
            .for_each(|item| part(&array.items, item, drops_nulls)),
        _ => {}
    }
}

/// An item or a map's value: a null gives way to the default.
fn part(schema: &Schema, value: &mut Value, drops_nulls: bool) {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = default.clone();
    }
    apply(schema, value, drops_nulls);
}
