//! JSON as Go's decoders read it: bytes that are not UTF-8 are replaced, repeated fields are reported.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::json_error;

/// A JSON document and the paths of the fields that it gives more than once.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// Parses a document. The error is in Go's words.
pub(crate) fn parse(bytes: &[u8]) -> Result<Document, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let value = At {
        path: String::new(),
        duplicates: &mut duplicates,
    }
    .deserialize(&mut deserializer);
    match value.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok(Document { value, duplicates }),
        Err(error) => Err(json_error::describe(&text).unwrap_or_else(|| error.to_string())),
    }
}

/// The value at one place of the document.
struct At<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl At<'_> {
    fn child(&mut self, path: String) -> At<'_> {
        At {
            path,
            duplicates: self.duplicates,
        }
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, out.len());
            match items.next_element_seed(self.child(path))? {
                Some(value) => out.push(value),
                None => return Ok(Value::Array(out)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            let repeated = out.contains_key(&key);
            if repeated && !self.duplicates.contains(&path) {
                self.duplicates.push(path.clone());
            }
            let value = fields.next_value_seed(self.child(path))?;
            match (out.get_mut(&key), value) {
                // Go decodes the second occurrence into what the first one left.
                (Some(Value::Object(before)), Value::Object(value)) => before.extend(value),
                (_, value) => {
                    out.insert(key, value);
                }
            }
        }
        Ok(Value::Object(out))
    }
}
