//! Protobuf to JSON, by the type's description.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use shared_json::{Array, Map, Value};

use super::fields::{self, Entry};
use crate::types::{Field, Kind, Object, Schema, Written};
use crate::wire::{Malformed, Reader, Token};

/// How deep messages may be in one another, as in Go's decoders.
const DEPTH_MAX: usize = 100;

/// Reads a message's fields; skips unknown numbers.
pub(super) fn message(schema: &Schema, bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let mut out = Map::new();
    let name = schema.name.as_deref().unwrap_or_default();
    if let Kind::Object(object) = &schema.kind {
        entries(fields::of(name), object, bytes, &mut out, depth)?;
    }
    Ok(Value::Object(out))
}

fn entries(
    known: &[Entry],
    object: &Object,
    bytes: &[u8],
    out: &mut Map,
    depth: usize,
) -> Result<(), Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed);
    }
    let mut reader = Reader::new(bytes);
    while let Some((number, token)) = reader.next_field()? {
        match known.iter().find(|entry| entry.number() == number) {
            Some(Entry::Inline(_, inner)) => entries(inner, object, token.bytes()?, out, depth + 1)?,
            Some(Entry::Field(name, _)) => {
                if let Some(field) = object.fields.get(name) {
                    read(name, field, &token, out, depth)?;
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Reads one field into the object. A zero that is not behind a pointer is as good as absent.
fn read(name: &str, field: &Field, token: &Token<'_>, out: &mut Map, depth: usize) -> Result<(), Malformed> {
    match &field.schema.kind {
        Kind::Array(array) => {
            let list = out.entry(name).or_insert_with(|| Value::Array(Array::new()));
            if let Some(list) = list.as_array_mut() {
                items(&array.items, token, list, depth)?;
            }
        }
        Kind::Object(object) if object.fields.is_empty() && object.additional.is_some() => {
            let Some(values) = &object.additional else {
                return Ok(());
            };
            let (key, value) = map_entry(values, token.bytes()?, depth)?;
            let map = out.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
        }
        _ => {
            let value = single(&field.schema, token, depth)?;
            let keep = field.pointer || field.written == Written::Always || !is_zero(&value);
            if keep && !(value.is_null()) {
                out.insert(name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The items of a list: one a field, or (of numbers) several packed into one.
fn items(schema: &Schema, token: &Token<'_>, list: &mut Array, depth: usize) -> Result<(), Malformed> {
    if let (Kind::Integer | Kind::Boolean, Token::Bytes(packed)) = (&schema.kind, token) {
        let mut reader = Reader::new(packed);
        while !reader.is_empty() {
            let value = Token::Varint(reader.varint()?);
            list.push(single(schema, &value, depth)?);
        }
        return Ok(());
    }
    list.push(single(schema, token, depth)?);
    Ok(())
}

fn map_entry(schema: &Schema, bytes: &[u8], depth: usize) -> Result<(String, Value), Malformed> {
    let mut key = String::new();
    let mut value = match &schema.kind {
        Kind::String | Kind::Bytes => Value::from(""),
        Kind::Array(_) => Value::Array(Array::new()),
        Kind::Object(_) => Value::Object(Map::new()),
        _ => Value::Null,
    };
    let mut reader = Reader::new(bytes);
    while let Some((number, token)) = reader.next_field()? {
        match (number, &schema.kind) {
            (1, _) => key = token.text()?,
            (2, Kind::Array(array)) => {
                let mut list = Array::new();
                let mut inner = Reader::new(token.bytes()?);
                while let Some((_, token)) = inner.next_field()? {
                    items(&array.items, &token, &mut list, depth + 1)?;
                }
                value = Value::from(list);
            }
            (2, _) => value = single(schema, &token, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A value that is no list and no map; null for one that is not there, such as the zero time.
fn single(schema: &Schema, token: &Token<'_>, depth: usize) -> Result<Value, Malformed> {
    Ok(match &schema.kind {
        Kind::Object(_) => message(schema, token.bytes()?, depth + 1)?,
        Kind::String => Value::from(token.text()?),
        Kind::Bytes => Value::from(STANDARD.encode(token.bytes()?)),
        Kind::Integer => Value::from(token.number()? as i64),
        Kind::Boolean => Value::from(token.number()? != 0),
        Kind::Number => Value::from(token.double()?),
        Kind::Quantity => {
            let mut reader = Reader::new(token.bytes()?);
            match reader.next_field()? {
                Some((1, text)) => Value::from(text.text()?),
                _ => Value::Null,
            }
        }
        Kind::IntOrString => int_or_string(token.bytes()?)?,
        Kind::Time | Kind::MicroTime => time(token.bytes()?, matches!(schema.kind, Kind::MicroTime))?,
        Kind::Any => any(schema, token.bytes()?, depth)?,
        Kind::Array(_) => Value::Null,
    })
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((field, token)) = reader.next_field()? {
        match field {
            1 => is_text = token.number()? == 1,
            2 => number = token.number()? as i64,
            3 => text = token.text()?,
            _ => {}
        }
    }
    Ok(if is_text {
        Value::from(text)
    } else {
        Value::from(number)
    })
}

fn time(bytes: &[u8], micro: bool) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut reader = Reader::new(bytes);
    while let Some((field, token)) = reader.next_field()? {
        match field {
            1 => seconds = token.number()? as i64,
            2 => nanos = token.number()? as i32,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanos).map_err(|_| Malformed)?;
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S%.6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(Value::from(time.strftime(form).to_string()))
}

fn any(schema: &Schema, bytes: &[u8], depth: usize) -> Result<Value, Malformed> {
    let props = super::json_schema_props();
    let name = schema.name.as_deref().unwrap_or_default();
    let short = name.rsplit('.').next().unwrap_or_default();
    let mut out = Value::Null;
    let mut list = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((field, token)) = reader.next_field()? {
        match (short, field) {
            ("JSONSchemaPropsOrBool", 1) => out = Value::from(token.number()? != 0),
            ("JSONSchemaPropsOrBool", 2) | ("JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray", 1) => {
                out = message(&props, token.bytes()?, depth + 1)?;
            }
            ("JSONSchemaPropsOrArray", 2) => list.push(message(&props, token.bytes()?, depth + 1)?),
            ("JSONSchemaPropsOrStringArray", 2) => list.push(Value::from(token.text()?)),
            (_, 1) => out = shared_json::from_slice(token.bytes()?).map_err(|_| Malformed)?,
            _ => {}
        }
    }
    Ok(if list.is_empty() { out } else { Value::from(list) })
}
