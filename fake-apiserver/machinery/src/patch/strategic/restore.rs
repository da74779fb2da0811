//! The server's errors when a merged object cannot be turned back into its Go type.

use crate::patch::print::{go_type, in_order};
use crate::types::{Kind, Schema};
use shared_json::{Map, Name, Number, Value};

/// Up to here fractions hold whole numbers exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Checks that the merged object still is of its type, where it is not as it was before: an object of the type. The error
/// is the first one, in the order of Go's structs.
pub(super) fn check_merged(schema: &Schema, before: &Value, value: &Value) -> Result<(), String> {
    Order::Any
        .check_merged(schema, before, value)
        .or_else(|_| Order::Go.check_merged(schema, before, value))
}

/// Checks that the merged object still is of its type; the error is the first one, in the order of Go's structs.
pub fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    Order::Any
        .check(schema, value)
        .or_else(|_| Order::Go.check(schema, value))
}

/// The order in which fields are checked. Only the choice of the first error depends on it, so it is `Any` until there is one.
#[derive(Clone, Copy)]
enum Order {
    Any,
    Go,
}

impl Order {
    fn check_merged(self, schema: &Schema, before: &Value, value: &Value) -> Result<(), String> {
        if before.is_same(value) {
            return Ok(());
        }
        let (old, new) = match (&schema.kind, before, value) {
            (Kind::Object(_), Value::Object(old), Value::Object(new)) => (old, new),
            (Kind::Array(array), Value::Array(old), Value::Array(new)) => {
                let mut fresh = new.iter().filter(|item| !old.iter().any(|old| old.is_same(item)));
                return fresh.try_for_each(|item| self.check(&array.items, item));
            }
            _ => return self.check(schema, value),
        };
        self.fields(schema, new, |name, schema, value| match old.get(name) {
            Some(before) if !value.is_null() => self.check_merged(schema, before, value),
            _ => self.check(schema, value),
        })
    }

    /// Checks the fields that the schema of an object knows.
    fn fields(
        self,
        schema: &Schema,
        map: &Map,
        check: impl Fn(&str, &Schema, &Value) -> Result<(), String>,
    ) -> Result<(), String> {
        let Kind::Object(object) = &schema.kind else {
            return Ok(());
        };
        let known = |name: &Name, value: &Value| {
            let field = object.fields.named(name).map(|field| &*field.schema);
            match field.or(object.additional.as_deref()) {
                Some(schema) => check(name, schema, value),
                None => Ok(()),
            }
        };
        match self {
            Order::Any => map.iter().try_for_each(|(name, value)| known(name, value)),
            Order::Go => in_order(schema, map)
                .into_iter()
                .try_for_each(|(name, value)| known(name, value)),
        }
    }

    fn check(self, schema: &Schema, value: &Value) -> Result<(), String> {
        match (&schema.kind, value) {
            (_, Value::Null) | (Kind::Any, _) => Ok(()),
            (Kind::Object(_), Value::Object(map)) => {
                self.fields(schema, map, |_, schema, value| self.check(schema, value))
            }
            (Kind::Object(_), other) if schema.is_struct() => {
                Err(format!("cannot restore struct from: {}", short(other)))
            }
            (Kind::Object(_), other) => Err(format!("cannot restore map from {}", short(other))),
            (Kind::Array(array), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.check(&array.items, item))
            }
            (Kind::Array(_), other) => Err(format!("cannot restore slice from {}", short(other))),
            (Kind::Bytes, other @ Value::Object(_)) => {
                Err(format!("cannot restore slice from {}", short(other)))
            }
            // These decode themselves from JSON.
            (Kind::IntOrString | Kind::Quantity | Kind::Time | Kind::MicroTime | Kind::Bytes, value) => {
                schema.check_types(value).map_err(|error| error.to_string())
            }
            (Kind::String, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_)) => Ok(()),
            (Kind::Integer, Value::Number(_)) => match schema.check_types(value) {
                Ok(()) => Ok(()),
                Err(_) => Err(format!("cannot convert {} to {}", go_type(value), target(schema))),
            },
            // Only whole numbers could be texts; other values are of no kind that Go would convert.
            (Kind::String, Value::Number(number)) if number.as_i64().is_some() => {
                Err(format!("cannot convert {} to {}", go_type(value), target(schema)))
            }
            _ => Err(format!("unrecognized type: {}", basic(schema))),
        }
    }
}

/// Converts numbers to whole ones as Go does: drops zero fractions, and truncates numbers that are too large. Returns whether it
/// changed any.
pub fn narrow(schema: &Schema, value: &mut Value) -> bool {
    let mut any = false;
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (name, value) in map.iter_mut() {
                let field = object.fields.named(name).map(|field| &*field.schema);
                if let Some(schema) = field.or(object.additional.as_deref()) {
                    any |= narrow(schema, value);
                }
            }
        }
        (Kind::Array(array), Value::Array(items)) => {
            for item in items.iter_mut() {
                any |= narrow(&array.items, item);
            }
        }
        (Kind::Integer, Value::Number(number)) => {
            let whole = |float: &f64| float.fract() == 0.0 && float.abs() < WHOLE_MAX;
            let given = number.as_i64();
            let Some(mut whole) = given.or_else(|| number.as_f64().filter(whole).map(|float| float as i64))
            else {
                return false;
            };
            if schema.format.as_deref() == Some("int32") && i32::try_from(whole).is_err() {
                // The lower half, whatever its sign becomes.
                let low = whole.rem_euclid(1 << 32);
                whole = if low < 1 << 31 { low } else { low - (1 << 32) };
            }
            any = given != Some(whole);
            *number = Number::from(whole);
        }
        _ => {}
    }
    any
}

/// Go's kind of the value, as reflection names it.
fn short(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => go_type(other),
    }
}

fn target(schema: &Schema) -> String {
    match &schema.go_type {
        Some(name) => name.to_string(),
        None => basic(schema),
    }
}

/// The kind of Go's type, whatever its name is.
fn basic(schema: &Schema) -> String {
    match &schema.kind {
        Kind::Integer => schema.format.as_deref().unwrap_or("int64").to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        _ => "string".to_owned(),
    }
}
