//! Request bodies: JSON, YAML or protobuf to a value.

use std::fmt;

use http::StatusCode;
use machinery::go_json::{self, Document};
use machinery::protobuf;
use machinery::status::ApiError;
use serde::de::value::{I128Deserializer, U128Deserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use shared_json::{Map, Value};

use super::yaml_keys;

/// The largest body that is read: 3 MiB, as the real server.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// The format that a content type names.
///
/// # Errors
/// 415 for a type that is not read here.
pub(crate) fn format(content_type: &str) -> Result<Format, ApiError> {
    let listed = content_type.trim_end();
    // Nothing at all may follow the last semicolon.
    let mut parts = listed
        .strip_suffix(';')
        .unwrap_or(listed)
        .split(';')
        .map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    // A parameter is one only with a value.
    if parts.any(|parameter| !parameter.contains('=')) {
        return Err(unsupported());
    }
    match media_type.to_ascii_lowercase().as_str() {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Format::Protobuf),
        _ => Err(unsupported()),
    }
}

/// Decodes a body by its content type; the inner error is in Go's words. An empty YAML document is `Null`.
pub(crate) fn document(format: Format, body: &[u8]) -> Result<Document, String> {
    match format {
        Format::Json => go_json::parse(body),
        Format::Yaml => yaml_document(body),
        Format::Protobuf => protobuf::decode(body).map(without_duplicates),
    }
}

/// Decodes a body that is no object of a resource (options, a binding, a scale). An empty body is `Null`.
///
/// # Errors
/// 400 for text that does not parse, 415 for an unsupported type.
pub(crate) fn decode(content_type: &str, body: &[u8]) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    match format(content_type)? {
        Format::Json => json(body),
        Format::Yaml => yaml(body),
        Format::Protobuf => protobuf::decode(body).map_err(ApiError::bad_request),
    }
}

/// Decodes YAML as the real server does: of a key that is there twice the last one counts, and is reported.
fn yaml_document(body: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("yaml: {error}"))?;
    read_yaml(first_document(text)).map_err(|message| match in_go_words(&message) {
        Some(known) => known,
        None => format!("error converting YAML to JSON: {message}"),
    })
}

/// Parses the subset that JSON and YAML share, which is the YAML that programs send: parsing it as YAML takes many times as long.
///
/// None for all that they might take differently: text beyond printable ASCII, characters by their number, numbers that are not
/// whole, and fields that are given twice; and for invalid JSON.
fn plain_json(text: &str) -> Option<Value> {
    fn is_plain(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_i64(),
            Value::Array(items) => items.iter().all(is_plain),
            Value::Object(map) => map.values().all(is_plain),
            Value::Null | Value::Bool(_) | Value::String(_) => true,
        }
    }
    let is_read_alike = |byte| matches!(byte, b'\n' | b'\r' | b' '..=b'~');
    if !text.starts_with('{') || !text.bytes().all(is_read_alike) || text.contains("\\u") {
        return None;
    }
    let document = go_json::parse(text.as_bytes()).ok()?;
    (document.duplicates.is_empty() && is_plain(&document.value)).then_some(document.value)
}

fn read_yaml(text: &str) -> Result<Document, String> {
    if let Some(value) = plain_json(text) {
        return Ok(without_duplicates(value));
    }
    let message = match serde_saphyr::from_str::<Yaml>(text) {
        Ok(Yaml(value)) => return Ok(without_duplicates(value)),
        Err(error) => error.to_string(),
    };
    let options =
        serde_saphyr::options! { duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins };
    match serde_saphyr::from_str_with_options::<Yaml>(text, options) {
        Ok(Yaml(value)) => Ok(Document {
            value,
            duplicates: yaml_keys::repeated(text),
        }),
        Err(_) => Err(message),
    }
}

/// YAML whose keys are read as any other value, and then written as texts: `n` is the key `false`.
struct Yaml(Value);

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlValue).map(Self)
    }
}

struct YamlValue;

impl<'de> Visitor<'de> for YamlValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        Value::deserialize(I128Deserializer::new(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        Value::deserialize(U128Deserializer::new(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Yaml(item)) = elements.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((Yaml(key), Yaml(value))) = entries.next_entry()? {
            let key = match key {
                Value::String(text) => text.to_string(),
                Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
                other => other.to_string(),
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn without_duplicates(value: Value) -> Document {
    Document {
        value,
        duplicates: Vec::new(),
    }
}

/// Decodes JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, ApiError> {
    go_json::parse(body)
        .map(|document| document.value)
        .map_err(|error| {
            ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        })
}

/// Decodes YAML, of which JSON is a part.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: {error}")))
}

/// The first document of a YAML text; later ones are ignored. Comments alone are no document.
fn first_document(text: &str) -> &str {
    let says_something = |part: &&str| {
        part.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#') && line != "---"
        })
    };
    text.split("\n---").find(says_something).unwrap_or_default()
}

/// The first document of some YAML; no text at all is null. Of a key that is there twice the last one counts, and is reported.
/// The error is in the real server's words.
pub(crate) fn first_yaml(body: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("yaml: {error}"))?;
    let first = first_document(text);
    if first.trim().is_empty() {
        return Ok(without_duplicates(Value::Null));
    }
    read_yaml(first).map_err(|message| {
        let why = in_go_words(&message).unwrap_or_else(|| format!("yaml: {message}"));
        format!("error converting YAML to JSON: {why}")
    })
}

/// The message of the real server's parser, where its wording is known; it names no line if that is the first.
fn in_go_words(message: &str) -> Option<String> {
    if let Some((_, rest)) = message.split_once("non-finite float `") {
        // The parser takes it, and what makes JSON of it does not.
        let written = rest.split('`').next().unwrap_or_default().to_lowercase();
        let value = match written.trim_start_matches('+') {
            ".nan" => "NaN",
            "-.inf" => "-Inf",
            _ => "+Inf",
        };
        return Some(format!("json: unsupported value: {value}"));
    }
    let known = "mapping values are not allowed in this context";
    if !message.contains(known) {
        return None;
    }
    let line = message
        .split_once("line ")
        .map_or("1", |(_, after)| after.split(' ').next().unwrap_or_default());
    Some(match line {
        "1" => format!("yaml: {known}"),
        line => format!("yaml: line {line}: {known}"),
    })
}

/// 415: the body is of a type that is not read here.
pub(crate) fn unsupported() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case("", Value::Null)]
    #[case("a: 1\n", json!({"a": 1}))]
    #[case("a: 1\n---\nb: 2\n", json!({"a": 1}))]
    #[case("# a comment\n---\na: 1\n", json!({"a": 1}))]
    #[case("---\na: |\n  x\n   ---\n", json!({"a": "x\n ---\n"}))]
    fn the_first_document(#[case] text: &str, #[case] expected: Value) {
        let read = first_yaml(text.as_bytes()).map(|document| document.value);
        assert_eq!(read, Ok(expected));
    }

    #[rstest]
    #[case(
        r#"{"a": {"b": [1, -2, true, null, "c: d # e", "yes", "1.0", "\/\n\t\"\\"]}}"#,
        true
    )]
    #[case("{\"a\":\r\n 1}\n", true)]
    #[case("{}", true)]
    #[case(r#"{"a": 1.0}"#, false)]
    #[case(r#"{"a": 1e3}"#, false)]
    #[case(r#"{"a": 18446744073709551615}"#, false)]
    #[case(r#"{"a": 1, "a": 2}"#, false)]
    #[case(r#"{"a": "\u00e9"}"#, false)]
    #[case(r#"{"a": "é"}"#, false)]
    #[case("{a: 1}", false)]
    #[case("{\"a\": 1}\n---\n{\"b\": 2}", false)]
    #[case("[]", false)]
    fn json_that_is_read_as_such(#[case] text: &str, #[case] expected: bool) {
        let read = plain_json(text);
        assert_eq!(read.is_some(), expected);
        if let Some(read) = read {
            assert_eq!(serde_saphyr::from_str::<Value>(text).ok(), Some(read));
        }
    }

    proptest::proptest! {
        /// Whatever is read as JSON would have been read as the same YAML.
        #[test]
        fn json_is_read_as_yaml_would_be(
            fields in proptest::collection::btree_map("[ -~]{0,12}", ("[ -~\n\t]{0,20}", proptest::num::i64::ANY), 0..6),
        ) {
            let value: Value = fields.into_iter().map(|(key, (text, number))| (key, json!([text, number]))).collect();
            for text in [value.to_string(), format!("{value:#}")] {
                if let Some(read) = plain_json(&text) {
                    proptest::prop_assert_eq!(serde_saphyr::from_str::<Value>(&text).ok(), Some(read));
                }
            }
        }
    }

    #[test]
    fn the_last_of_two_keys_counts() {
        let read = first_yaml(b"a: 1\nb: 2\na: 3\n").expect("a document");
        assert_eq!(read.value, json!({"a": 3, "b": 2}));
        assert_eq!(read.duplicates, ["line 3: key \"a\" already set in map"]);
    }
}
