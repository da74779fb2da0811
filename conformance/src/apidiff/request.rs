//! The requests of a case and their answers, as values.

use std::collections::BTreeMap;
use std::io::Read as _;

use shared_json::{Array, Map, Value};

use super::case::Step;
use super::compare::sorted_text;
use super::pointer;

/// The user agent of the requests: it is in managed fields.
const USER_AGENT: &str = "apidiff";

/// The captured values, by name.
pub(super) struct Variables(pub(super) BTreeMap<String, Value>);

/// A request, ready to be sent.
pub(super) struct Prepared {
    pub(super) method: String,
    pub(super) uri: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) anonymous: bool,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, Vec<String>>,
    pub(super) json: Option<Value>,
    pub(super) text: String,
}

impl Variables {
    pub(super) fn filled_text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let known = after
                .split_once('}')
                .and_then(|(name, rest)| Some((self.0.get(name)?, rest)));
            match known {
                Some((Value::String(value), after)) => {
                    out.push_str(value);
                    rest = after;
                }
                Some((value, after)) => {
                    out.push_str(&sorted_text(value));
                    rest = after;
                }
                None => {
                    out.push_str("${");
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// A value with its variables replaced; a text that is one variable becomes that variable's value, of whatever type.
    pub(super) fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                match name.and_then(|name| self.0.get(name)) {
                    Some(value) => value.clone(),
                    None => Value::from(self.filled_text(text)),
                }
            }
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (self.filled_text(key), self.filled(value)))
                .collect::<Map>()
                .into(),
            other => other.clone(),
        }
    }

    pub(super) fn prepared(&self, step: &Step) -> Prepared {
        let mut uri = self.filled_text(&step.path);
        let query = match step.query.as_ref().map(|query| self.filled(query)) {
            None => String::new(),
            Some(Value::Object(map)) => {
                let mut pairs = form_urlencoded::Serializer::new(String::new());
                for (name, value) in &map {
                    for value in value.as_array().unwrap_or(&Array::from([value.clone()])) {
                        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        pairs.append_pair(name, &text);
                    }
                }
                pairs.finish()
            }
            Some(other) => other.as_str().unwrap_or_default().to_owned(),
        };
        if !query.is_empty() {
            uri.push('?');
            uri.push_str(&query);
        }
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        headers.insert("user-agent".to_owned(), vec![USER_AGENT.to_owned()]);
        headers.insert("accept".to_owned(), vec!["application/json".to_owned()]);
        if let Some(token) = step.identity.as_deref().filter(|identity| *identity != "none") {
            let bearer = format!("Bearer {}", self.filled_text(token));
            headers.insert("authorization".to_owned(), vec![bearer]);
        }
        let body = if let Some(body) = &step.body {
            let unchanged = step.set.is_empty() && step.unset.is_empty();
            let ordered = unchanged.then(|| {
                body.text(&|name| self.filled_text(name), &|value| {
                    sorted_text(&self.filled(value))
                })
            });
            let mut body = self.filled(&body.to_value());
            for (at, value) in &step.set {
                pointer::set(&mut body, &self.filled_text(at), self.filled(value));
            }
            step.unset.iter().for_each(|at| pointer::remove(&mut body, at));
            // Some answers quote what was sent.
            Some(ordered.unwrap_or_else(|| sorted_text(&body)).into_bytes())
        } else if let Some(raw) = &step.raw {
            Some(self.filled_text(raw).into_bytes())
        } else if let Some(raw) = &step.raw_b64 {
            Some(raw.bytes().to_vec())
        } else {
            step.raw_repeat.as_ref().map(|(prefix, unit, count, suffix)| {
                format!(
                    "{}{}{}",
                    self.filled_text(prefix),
                    unit.repeat(*count),
                    self.filled_text(suffix)
                )
                .into_bytes()
            })
        };
        if body.is_some() {
            headers.insert("content-type".to_owned(), vec!["application/json".to_owned()]);
        }
        for (name, value) in &step.headers {
            let name = name.to_ascii_lowercase();
            let text = |value: &Value| match value {
                Value::String(text) => self.filled_text(text),
                other => other.to_string(),
            };
            match value {
                Value::Null => {
                    headers.remove(&name);
                }
                Value::Array(values) => {
                    headers.insert(name, values.iter().map(text).collect());
                }
                value => {
                    headers.insert(name, vec![text(value)]);
                }
            }
        }
        Prepared {
            method: step.method().to_owned(),
            uri,
            headers: headers
                .into_iter()
                .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)))
                .collect(),
            body,
            anonymous: step.identity.is_some(),
        }
    }
}

impl Answer {
    /// An answer's parts from its bytes, unpacked if they are compressed.
    pub(super) fn new(status: u16, headers: BTreeMap<String, Vec<String>>, bytes: &[u8]) -> Self {
        let first = |name: &str| {
            headers
                .get(name)
                .and_then(|values| values.first())
                .map_or("", String::as_str)
        };
        let mut inflated = Vec::new();
        let zipped = first("content-encoding") == "gzip"
            && flate2::read::GzDecoder::new(bytes)
                .read_to_end(&mut inflated)
                .is_ok();
        let bytes = if zipped { &inflated } else { bytes };
        let kind = first("content-type");
        let is_json = kind.contains("json") || matches!(bytes.first(), Some(b'{' | b'['));
        let text = if kind.contains("protobuf") {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        } else {
            String::from_utf8_lossy(bytes).into_owned()
        };
        Self {
            status,
            json: is_json.then(|| shared_json::from_slice(bytes).ok()).flatten(),
            text,
            headers,
        }
    }
}

/// Header values by lower-case name.
pub(super) fn headers_of(headers: &http::HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        out.entry(name.as_str().to_owned()).or_default().push(value);
    }
    out
}

/// A path and query as they may stand in a request; cases write some characters as they are.
pub(super) fn escaped(uri: &str) -> String {
    uri.bytes()
        .map(|byte| match byte {
            b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x7f.. => {
                format!("%{byte:02X}")
            }
            _ => char::from(byte).to_string(),
        })
        .collect()
}
