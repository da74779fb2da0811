//! JSON as values of CEL.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::Value;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use shared_json::{Name, Value as Json};

use crate::types::{Kind, Schema};

/// Words that are no names in CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether `name` is a word that is no name in CEL.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The name by which expressions reach a declared field.
pub fn escape(name: &str) -> String {
    if is_reserved(name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/', '_']) {
        return name.to_owned();
    }
    name.replace("__", "\u{0}")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .replace('\u{0}', "__underscores__")
}

/// Whether expressions reach a declared field by this name: reserved words are taken after a dot as they are, too.
pub(super) fn is_called(field: &str, name: &str) -> bool {
    escape(field) == name || field == name && is_reserved(name)
}

/// The field's own name, of the name by which expressions reach it.
pub(super) fn unescape(name: &str) -> String {
    let inner = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(inner) = inner.filter(|inner| is_reserved(inner)) {
        return inner.to_owned();
    }
    name.replace("__underscores__", "\u{0}")
        .replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace('\u{0}', "__")
}

/// A value as JSON: values without a JSON form are text.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => Json::from(*flag),
        Value::Int(number) => Json::from(*number),
        Value::UInt(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::String(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(base64::engine::general_purpose::STANDARD.encode(bytes.as_slice())),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Map(map) => {
            // Sorted, as JSON objects are.
            let fields: std::collections::BTreeMap<String, Json> = map
                .map
                .iter()
                .map(|(key, value)| (key.to_string(), to_json(value)))
                .collect();
            Json::Object(fields.into_iter().collect())
        }
        Value::Timestamp(time) => Json::from(time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
        Value::Duration(duration) => Json::from(format!("{}s", duration.num_seconds())),
        _ => Json::Null,
    }
}

/// A text.
pub fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

/// A map with texts as keys.
pub fn map(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    let map: HashMap<Key, Value> = entries
        .into_iter()
        .map(|(name, value)| (Key::String(Arc::new(name)), value))
        .collect();
    Value::Map(Map { map: Arc::new(map) })
}

/// Keys and values of a map, in the keys' order, or places and items of a list: as a list of pairs.
pub(super) fn entries(of: &Value) -> Value {
    let pair = |key: Value, value: &Value| Value::List(Arc::new(vec![key, value.clone()]));
    let pairs = match of {
        Value::List(items) => {
            let places = items.iter().enumerate();
            places
                .map(|(place, item)| pair(Value::Int(place as i64), item))
                .collect()
        }
        Value::Map(map) => {
            let mut sorted: Vec<(String, Value)> = map
                .map
                .iter()
                .map(|(key, value)| (key.to_string(), pair(Value::from(key.clone()), value)))
                .collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            sorted.into_iter().map(|(_, pair)| pair).collect()
        }
        _ => Vec::new(),
    };
    Value::List(Arc::new(pairs))
}

/// A map with one entry more.
pub(super) fn with_entry(map: &Value, key: Value, value: Value) -> Value {
    let Value::Map(map) = map else {
        return Value::Null;
    };
    let mut entries = (*map.map).clone();
    let key = match key {
        Value::String(text) => Key::String(text),
        Value::Int(number) => Key::Int(number),
        Value::UInt(number) => Key::Uint(number),
        Value::Bool(flag) => Key::Bool(flag),
        _ => return Value::Map(map.clone()),
    };
    entries.insert(key, value);
    Value::Map(Map {
        map: Arc::new(entries),
    })
}

/// A value that may be missing.
pub fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(match value {
        Some(value) => OptionalValue::of(value),
        None => OptionalValue::none(),
    }))
}

/// JSON of which nothing is known.
pub fn plain(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(given) => text(given),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(plain).collect())),
        Json::Object(fields) => map(fields
            .iter()
            .map(|(name, value)| (name.to_string(), plain(value)))),
    }
}

/// JSON that a schema describes.
pub fn typed(json: &Json, schema: &Schema) -> Value {
    match (&schema.kind, json) {
        (Kind::Object(object), Json::Object(fields)) => {
            // A declared field that is null counts as absent.
            let set = |(name, value): &(&Name, &Json)| !value.is_null() || !object.fields.contains_key(name);
            let entries = fields.iter().filter(set).flat_map(|(name, value)| {
                let (escaped, value) = match (object.fields.get(name), &object.additional) {
                    (Some(field), _) => (escape(name), typed(value, &field.schema)),
                    (None, Some(values)) => (name.to_string(), typed(value, values)),
                    (None, None) => (name.to_string(), plain(value)),
                };
                // A field that is called by a reserved word can be written either way.
                let other =
                    (is_reserved(name) && escaped != **name).then(|| (name.to_string(), value.clone()));
                std::iter::once((escaped, value)).chain(other)
            });
            map(entries)
        }
        (Kind::Array(array), Json::Array(items)) => Value::List(Arc::new(
            items.iter().map(|item| typed(item, &array.items)).collect(),
        )),
        (Kind::Number, Json::Number(number)) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        (Kind::Integer, Json::Number(number)) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            // Written as 1.0.
            None => Value::Int(number.as_f64().unwrap_or_default() as i64),
        },
        (Kind::String, Json::String(given)) => formatted(given, schema.format.as_deref()),
        (Kind::Bytes, Json::String(given)) => bytes(given),
        (_, json) => plain(json),
    }
}

/// A text that stands for something else, or the text itself where it does not.
fn formatted(given: &str, format: Option<&str>) -> Value {
    let read = match format {
        Some("date-time") => chrono::DateTime::parse_from_rfc3339(given)
            .ok()
            .map(Value::Timestamp),
        Some("date") => chrono::DateTime::parse_from_rfc3339(&format!("{given}T00:00:00Z"))
            .ok()
            .map(Value::Timestamp),
        Some("duration") => duration(given).map(Value::Duration),
        Some("byte") => return bytes(given),
        _ => None,
    };
    read.unwrap_or_else(|| text(given))
}

fn bytes(given: &str) -> Value {
    let read = base64::engine::general_purpose::STANDARD.decode(given);
    read.map_or_else(|_| text(given), |bytes| Value::Bytes(Arc::new(bytes)))
}

/// `1h30m`, as Go reads it.
pub(super) fn duration(given: &str) -> Option<chrono::Duration> {
    let (sign, mut rest) = match given.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, given.strip_prefix('+').unwrap_or(given)),
    };
    if rest == "0" {
        return Some(chrono::Duration::zero());
    }
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    Some(chrono::Duration::nanoseconds(
        (sign * seconds * 1e9).round() as i64
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_names_after_a_dot() {
        for (field, name, expected) in [
            ("namespace", "namespace", true),
            ("namespace", "__namespace__", true),
            ("a-b", "a-b", false),
            ("a", "a", true),
            ("a", "b", false),
        ] {
            assert_eq!(is_called(field, name), expected, "{field} {name}");
        }
    }

    #[test]
    fn names_are_escaped_as_expressions_must_write_them() {
        let cases = [
            ("plain", "plain"),
            ("namespace", "__namespace__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("a_b", "a_b"),
        ];
        for (name, escaped) in cases {
            assert_eq!(escape(name), escaped);
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        assert_eq!(duration("1h30m"), Some(chrono::Duration::seconds(5400)));
        assert_eq!(duration("-1.5s"), Some(chrono::Duration::milliseconds(-1500)));
        assert_eq!(duration("0"), Some(chrono::Duration::zero()));
        assert_eq!(duration("1"), None);
        assert_eq!(duration(""), None);
        assert_eq!(duration("1y"), None);
    }
}
