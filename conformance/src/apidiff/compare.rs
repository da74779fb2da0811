//! The differences between two answers.

use std::fmt;

use shared_json::{Name, Value};

/// How many characters of a value are shown.
const SHOWN_CHARS_MAX: usize = 600;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, as a JSON pointer into the result of the step.
    pub path: String,
    /// The recorded server's value; `None` if it has none there.
    pub wanted: Option<String>,
    /// This server's value; `None` if it has none there.
    pub got: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.wanted, &self.got) {
            (Some(wanted), Some(got)) => write!(f, "~ {path}: want {wanted}\n      got  {got}"),
            (Some(wanted), None) => write!(f, "- {path}: {wanted}"),
            (None, Some(got)) => write!(f, "+ {path}: {got}"),
            (None, None) => write!(f, "  {path}"),
        }
    }
}

impl Difference {
    /// The kind of difference: `status`, `headers`, `message`, `events`, `setup` or `body`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.path.as_str() {
            "/status" => "status",
            path if path.starts_with("/setup") => "setup",
            path if path.starts_with("/headers") => "headers",
            path if path.ends_with("/message") => "message",
            path if path.starts_with("/events") => "events",
            _ => "body",
        }
    }
}

/// The differences between the wanted and the actual answer, in order of their paths.
pub(super) fn compare(wanted: &Value, got: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    walk(wanted, got, String::new(), &mut out);
    out
}

fn walk(wanted: &Value, got: &Value, path: String, out: &mut Vec<Difference>) {
    let mut one = |path: String, wanted: Option<&Value>, got: Option<&Value>| match (wanted, got) {
        (Some(wanted), Some(got)) => walk(wanted, got, path, out),
        (wanted, got) => out.push(Difference {
            path,
            wanted: wanted.map(shown),
            got: got.map(shown),
        }),
    };
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            let keys: std::collections::BTreeSet<&Name> = wanted.keys().chain(got.keys()).collect();
            for key in keys {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                one(path, wanted.get(key), got.get(key));
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            for index in 0..wanted.len().max(got.len()) {
                one(format!("{path}/{index}"), wanted.get(index), got.get(index));
            }
        }
        _ if wanted == got => {}
        _ => out.push(Difference {
            path,
            wanted: Some(shown(wanted)),
            got: Some(shown(got)),
        }),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A value as text by which lists are sorted: with the separators of the program that made the recordings.
pub(super) fn sorted_text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), sorted_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted_text).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"a": 1}), json!({"a": 1}), "")]
    #[case(json!({"a": 1}), json!({"b": 1}), "- /a: 1|+ /b: 1")]
    #[case(json!([1, 2]), json!([1]), "- /1: 2")]
    #[case(json!({"a/b": [{"c": "x"}]}), json!({"a/b": [{"c": "y"}]}), "~ /a~1b/0/c: want \"x\"\n      got  \"y\"")]
    #[case(json!(1), json!(true), "~ : want 1\n      got  true")]
    fn differences(#[case] wanted: Value, #[case] got: Value, #[case] expected: &str) {
        let found: Vec<String> = compare(&wanted, &got).iter().map(ToString::to_string).collect();
        assert_eq!(found.join("|"), expected);
    }
}
