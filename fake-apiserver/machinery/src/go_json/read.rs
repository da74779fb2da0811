//! JSON as Go's decoders read it: bytes that are not UTF-8 are replaced, repeated fields are reported.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use shared_json::{Entry, Map, Name, Value};

use super::{error as json_error, numbers};

/// A JSON document and the paths of the fields that it gives more than once.
#[derive(Debug, Default)]
pub struct Document {
    /// The document.
    pub value: Value,
    /// The paths of the fields that it gives more than once.
    pub duplicates: Vec<String>,
}

/// Parses a document for an object of a type: a repeated field is merged into the former one. The error is in Go's words.
pub fn parse(bytes: &[u8]) -> Result<Document, String> {
    parse_as(bytes, Repeated::Adds)
}

/// Parses a document without a type: a repeated field replaces the former one.
pub fn parse_untyped(bytes: &[u8]) -> Result<Document, String> {
    parse_as(bytes, Repeated::Replaces)
}

/// The treatment of a map that is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Adds,
    Replaces,
}

fn parse_as(bytes: &[u8], repeated: Repeated) -> Result<Document, String> {
    let text = String::from_utf8_lossy(bytes);
    match read(&text, repeated) {
        Ok(document) => Ok(document),
        // A half of a surrogate pair is no character: Go puts the replacement character in its place.
        Err(_) if text.contains("\\u") => read(&whole_surrogates(&text), repeated),
        // Go reads a number when it knows what it is for.
        Err(error) if error.contains("number out of range") => read(&numbers::within_range(&text), repeated),
        Err(error) => Err(error),
    }
}

/// The paths of all fields of a document in the order of the text; empty for invalid JSON.
pub fn order(bytes: &[u8]) -> Vec<String> {
    struct Fields<'a>(String, &'a mut Vec<String>);
    impl<'de> DeserializeSeed<'de> for Fields<'_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_any(self)
        }
    }
    impl<'de> Visitor<'de> for Fields<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }
        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }
        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }
        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }
        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
            for index in 0.. {
                let path = format!("{}[{index}]", self.0);
                if items.next_element_seed(Fields(path, self.1))?.is_none() {
                    break;
                }
            }
            Ok(())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
            while let Some(key) = fields.next_key::<String>()? {
                let path = if self.0.is_empty() {
                    key
                } else {
                    format!("{}.{key}", self.0)
                };
                self.1.push(path.clone());
                fields.next_value_seed(Fields(path, self.1))?;
            }
            Ok(())
        }
    }
    let mut paths = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    let read = Fields(String::new(), &mut paths).deserialize(&mut shared_json::Deserializer::from_str(&text));
    if read.is_err() { Vec::new() } else { paths }
}

/// Replaces escapes of half characters.
fn whole_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let taken = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str("\\ufffd");
                at += 6;
                continue;
            }
            // Also the character after a backslash, which may be another one.
            _ if rest.starts_with('\\') => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        out.push_str(rest.get(..taken).unwrap_or(rest));
        at += taken;
    }
    out
}

fn read(text: &str, repeated: Repeated) -> Result<Document, String> {
    let mut duplicates = Vec::new();
    let mut deserializer = shared_json::Deserializer::from_str(text);
    let value = At {
        path: Path::Root,
        duplicates: &mut duplicates,
        repeated,
    }
    .deserialize(&mut deserializer);
    match value.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok(Document { value, duplicates }),
        Err(error) => Err(json_error::describe(text).unwrap_or_else(|| error.to_string())),
    }
}

/// A place in a document; written out only where there is something to say of it.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The value at one place of the document.
struct At<'a> {
    path: Path<'a>,
    duplicates: &'a mut Vec<String>,
    repeated: Repeated,
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
        if value == 0.0 && value.is_sign_negative() {
            // `-0` is a whole number to Go.
            return Ok(Value::from(0));
        }
        shared_json::Number::from_f64(value)
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        loop {
            let item = At {
                path: Path::Item(&self.path, out.len()),
                duplicates: self.duplicates,
                repeated: self.repeated,
            };
            match items.next_element_seed(item)? {
                Some(value) => out.push(value),
                None => return Ok(Value::from(out)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = fields.next_key::<Name>()? {
            let path = Path::Field(&self.path, &key);
            if out.contains_key(&*key) {
                let path = path.to_string();
                if !self.duplicates.contains(&path) {
                    self.duplicates.push(path);
                }
            }
            let field = At {
                path,
                duplicates: self.duplicates,
                repeated: self.repeated,
            };
            let value = fields.next_value_seed(field)?;
            match (out.entry(key), value) {
                (Entry::Vacant(field), value) => {
                    field.insert(value);
                }
                (Entry::Occupied(mut field), value) => match (field.get_mut(), value) {
                    // Go decodes the second occurrence into what the first one left.
                    (Value::Object(before), Value::Object(value)) if self.repeated == Repeated::Adds => {
                        before.extend(value);
                    }
                    (before, value) => *before = value,
                },
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn what_is_repeated_adds_to_objects_of_a_type_alone() {
        let text = br#"{"a": {"x": 1}, "a": {"y": 2}}"#;
        let value = |document: Result<Document, String>| document.expect("JSON").value;
        assert_eq!(value(parse(text)), shared_json::json!({"a": {"x": 1, "y": 2}}));
        assert_eq!(value(parse_untyped(text)), shared_json::json!({"a": {"y": 2}}));
    }

    #[rstest]
    #[case(127, true)]
    #[case(128, false)]
    fn levels(#[case] count: usize, #[case] is_read: bool) {
        let text = ["[".repeat(count), "]".repeat(count)].concat();
        let read = parse(text.as_bytes()).map(|document| document.duplicates);
        assert_eq!(read.is_ok(), is_read, "{read:?}");
        assert!(is_read || read.is_err_and(|error| error.starts_with("recursion limit exceeded")));
    }

    #[test]
    fn fields_are_named_in_their_order() {
        let paths = order(br#"{"z": [{"y": 1}], "a": {"c": 2, "b": null}}"#);
        assert_eq!(paths, ["z", "z[0].y", "a", "a.c", "a.b"]);
        assert!(order(b"{").is_empty());
    }

    #[rstest]
    #[case(br#"["\ud800"]"#, "\u{fffd}")]
    #[case(br#"["\ud83d\ude00\udc00x"]"#, "\u{1f600}\u{fffd}x")]
    #[case(br#"["\\ud800\ud800"]"#, "\\ud800\u{fffd}")]
    #[case(b"[\"\xff\"]", "\u{fffd}")]
    fn half_characters_are_replaced(#[case] bytes: &[u8], #[case] expected: &str) {
        let document = parse(bytes).expect("JSON");
        assert_eq!(document.value, Value::from(vec![expected]));
    }
}
