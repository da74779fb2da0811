//! JSON to protobuf, by the type's description.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use shared_json::{Value, to_go_string};

use super::fields::{self, Entry};
use crate::types::{Kind, Object, Schema};
use crate::wire::Writer;

/// Writes an object's fields. As in Go, a field that is no pointer is written even if it is zero.
pub(super) fn message(out: &mut Writer, schema: &Schema, value: &Value) {
    let name = schema.name.as_deref().unwrap_or_default();
    if let Kind::Object(object) = &schema.kind {
        entries(out, fields::of(name), object, value);
    }
}

fn entries(out: &mut Writer, entries_: &[Entry], object: &Object, value: &Value) {
    for entry in entries_ {
        match entry {
            Entry::Inline(number, inner) => out.message(*number, |out| entries(out, inner, object, value)),
            Entry::Field(name, number) => {
                let Some(field) = object.fields.get(name) else {
                    continue;
                };
                match value.get(name).filter(|value| !value.is_null()) {
                    Some(value) => write(out, *number, &field.schema, value),
                    None if !field.pointer => zero(out, *number, &field.schema),
                    None => {}
                }
            }
        }
    }
}

/// Writes the zero value of an absent field that is no pointer.
fn zero(out: &mut Writer, number: u32, schema: &Schema) {
    match &schema.kind {
        Kind::String => out.string(number, ""),
        Kind::Integer | Kind::Boolean => out.varint(number, 0),
        Kind::Object(object) if object.additional.is_none() => {
            out.message(number, |out| message(out, schema, &Value::Null))
        }
        Kind::Time | Kind::MicroTime => out.message(number, |_| {}),
        Kind::Quantity => write(out, number, schema, &Value::from("0")),
        Kind::IntOrString => write(out, number, schema, &Value::from(0)),
        _ => {}
    }
}

fn write(out: &mut Writer, number: u32, schema: &Schema, value: &Value) {
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => match &object.additional {
            Some(values) if object.fields.is_empty() => {
                for (key, value) in map {
                    out.message(number, |out| {
                        out.string(1, key);
                        map_value(out, values, value);
                    });
                }
            }
            _ => out.message(number, |out| message(out, schema, value)),
        },
        (Kind::Array(array), Value::Array(items)) => {
            for item in items {
                write(out, number, &array.items, item);
            }
        }
        (Kind::String, Value::String(text)) => out.string(number, text),
        (Kind::Bytes, Value::String(text)) => out.bytes(number, &STANDARD.decode(text).unwrap_or_default()),
        // A negative number is the two's complement of 64 bits.
        (Kind::Integer, Value::Number(_)) => out.varint(number, value.as_i64().unwrap_or_default() as u64),
        (Kind::Number, Value::Number(_)) => out.double(number, value.as_f64().unwrap_or_default()),
        (Kind::Boolean, Value::Bool(flag)) => out.varint(number, u64::from(*flag)),
        (Kind::Quantity, Value::String(text)) => out.message(number, |out| out.string(1, text)),
        (Kind::Quantity, Value::Number(amount)) => {
            out.message(number, |out| out.string(1, &amount.to_string()))
        }
        (Kind::IntOrString, value) => out.message(number, |out| {
            out.varint(1, u64::from(value.is_string()));
            out.varint(2, value.as_i64().unwrap_or_default() as u64);
            out.string(3, value.as_str().unwrap_or_default());
        }),
        (Kind::Time | Kind::MicroTime, Value::String(text)) => {
            let time: Timestamp = text.parse().unwrap_or(Timestamp::UNIX_EPOCH);
            out.message(number, |out| {
                out.varint(1, time.as_second() as u64);
                out.varint(2, u64::try_from(time.subsec_nanosecond()).unwrap_or_default());
            });
        }
        (Kind::Any, value) => any(out, number, schema, value),
        _ => {}
    }
}

fn map_value(out: &mut Writer, schema: &Schema, value: &Value) {
    match &schema.kind {
        // A map's list is a message of its own (`ExtraValue`).
        Kind::Array(_) => out.message(2, |out| write(out, 1, schema, value)),
        _ => write(out, 2, schema, value),
    }
}

/// The types that are any JSON to OpenAPI and something to protobuf.
fn any(out: &mut Writer, number: u32, schema: &Schema, value: &Value) {
    let name = schema.name.as_deref().unwrap_or_default();
    let props = super::json_schema_props();
    match name.rsplit('.').next().unwrap_or_default() {
        "JSONSchemaPropsOrBool" => out.message(number, |out| {
            out.varint(1, u64::from(value.as_bool().unwrap_or(true)));
            if value.is_object() {
                out.message(2, |out| message(out, &props, value));
            }
        }),
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => out.message(number, |out| match value {
            Value::Array(items) => {
                for item in items {
                    match item.as_str() {
                        Some(text) => out.string(2, text),
                        None => out.message(2, |out| message(out, &props, item)),
                    }
                }
            }
            _ => out.message(1, |out| message(out, &props, value)),
        }),
        // Go clients send and compare the bytes that Go's encoder writes (`RawExtension.raw`).
        _ => out.message(number, |out| out.string(1, &to_go_string(value))),
    }
}
