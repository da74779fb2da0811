//! Placeholders for values that differ between any two servers: identities, times, addresses.
//!
//! The same value gets the same placeholder throughout a case, so that values that are equal within one answer or across several
//! must be equal in both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use regex::{Captures, Regex};
use shared_json::{Map, Value};

use super::encoded::Expression;

/// Times further from now than this are literal.
const NEAR_DAYS: i64 = 2;
const SECONDS_A_DAY: i64 = 86_400;
/// The part of a long prefix that a generated name keeps.
const PREFIX_CHARS: usize = 50;
/// The length of the suffix of a generated name.
const SUFFIX_CHARS: usize = 5;

macro_rules! expression {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a regular expression"));
    };
}

expression!(
    UID,
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
);
expression!(JWT, r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+");
expression!(
    TIME,
    r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)"
);
expression!(AGE, r"^(\d+[smhdy])+$|^<invalid>$");
expression!(
    KNOWN_VERSION,
    r"(the ResourceVersion in the precondition \(|does not match the ResourceVersion in record \(|ResourceVersion in precondition: |ResourceVersion in object meta: )(\d+)"
);
expression!(QUOTED_VERSION, r#"(resourceVersion\\*": ?\\*")(\d+)"#);
expression!(ADDRESS, r"^[0-9a-f.:]+$");

/// Texts that a server generates, and their placeholders.
static ANONYMOUS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rows = [
        (r"kube-api-access-[a-z0-9]{5}", "kube-api-access-<gen>"),
        (
            r"too old resource version: \d+ \(\d+\)",
            "too old resource version: <rv> (<rv>)",
        ),
        (
            r"Too large resource version: (\d+), current: \d+",
            "Too large resource version: $1, current: <rv>",
        ),
        (r"current: \d+", "current: <rv>"),
        (r"\bv1\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]*)?", "<version>"),
        (r"(127\.0\.0\.1|\[::1\]|localhost):\d{4,5}", "<hostport>"),
    ];
    rows.into_iter()
        .map(|(expression, by)| (Regex::new(expression).expect("a regular expression"), by))
        .collect()
});

/// Replaces the values that differ from server to server, consistently within one case.
pub(super) struct Normaliser {
    /// The placeholders given out, by kind and value.
    numbered: BTreeMap<(&'static str, String), String>,
    given: BTreeMap<&'static str, usize>,
    /// Values and their placeholders, the longest first.
    literals: Vec<(String, String)>,
    patterns: Vec<(Expression, String)>,
    /// The case's own text: addresses in it are no server's choice.
    fixed: String,
    now: Timestamp,
}

impl Normaliser {
    /// `now` is the server's time, `fixed` the text of the case.
    pub(super) fn new(patterns: Vec<(Expression, String)>, fixed: String, now: Timestamp) -> Self {
        Self {
            numbered: BTreeMap::new(),
            given: BTreeMap::new(),
            literals: Vec::new(),
            patterns,
            fixed,
            now,
        }
    }

    /// From now on `placeholder` stands for `value`, unless something does already.
    pub(super) fn literal(&mut self, value: &str, placeholder: &str) {
        if !value.is_empty() && self.literals.iter().all(|(known, _)| known != value) {
            self.literals.push((value.to_owned(), placeholder.to_owned()));
            self.literals
                .sort_by_key(|(value, _)| std::cmp::Reverse(value.chars().count()));
        }
    }

    /// Learns a service's address.
    pub(super) fn address(&mut self, address: &str) {
        if !address.is_empty() && address != "None" && !self.fixed.contains(address) {
            let placeholder = self.number("ip", address);
            self.literal(address, &placeholder);
        }
    }

    fn number(&mut self, kind: &'static str, value: &str) -> String {
        let key = (kind, value.to_owned());
        if let Some(placeholder) = self.numbered.get(&key) {
            return placeholder.clone();
        }
        let count = self.given.entry(kind).or_default();
        *count += 1;
        let placeholder = format!("<{kind}:{count}>");
        self.numbered.insert(key, placeholder.clone());
        placeholder
    }

    /// A text.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, placeholder) in &self.literals {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), placeholder);
            }
        }
        let text = UID.replace_all(&text, |found: &Captures<'_>| self.number("uid", &found[0]));
        let text = JWT.replace_all(&text, "<jwt>");
        let text = TIME.replace_all(&text, |found: &Captures<'_>| self.time(found));
        let text = KNOWN_VERSION.replace_all(&text, |found: &Captures<'_>| {
            let known = self.numbered.get(&("rv", found[2].to_owned()));
            format!("{}{}", &found[1], known.map_or(&found[2], String::as_str))
        });
        let text = QUOTED_VERSION.replace_all(&text, |found: &Captures<'_>| {
            let version = match &found[2] {
                "0" => "0".to_owned(),
                version => self.number("rv", version),
            };
            format!("{}{version}", &found[1])
        });
        let text = ANONYMOUS.iter().fold(text, |text, (expression, by)| {
            Cow::Owned(expression.replace_all(&text, *by).into_owned())
        });
        self.patterns
            .iter()
            .fold(text.into_owned(), |text, (expression, by)| {
                expression.replaced(&text, by)
            })
    }

    fn time(&self, found: &Captures<'_>) -> String {
        let Ok(date) = found[1].parse::<Date>() else {
            return found[0].to_owned();
        };
        let Ok(midnight) = date.to_zoned(jiff::tz::TimeZone::UTC) else {
            return found[0].to_owned();
        };
        let days = (self.now.as_second() - midnight.timestamp().as_second()).div_euclid(SECONDS_A_DAY);
        if days.abs() > NEAR_DAYS {
            return found[0].to_owned();
        }
        let fraction = match found.get(3).map(|fraction| fraction.as_str().len()) {
            None => "",
            Some(7) => ".6",
            Some(_) => ".n",
        };
        let zone = if &found[4] == "Z" { "" } else { "<tz>" };
        format!("<time{fraction}>{zone}")
    }

    /// Learns the generated names in a value, so that they are known wherever else they stand.
    pub(super) fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let of = |field: &str| map.get("metadata")?.get(field)?.as_str();
                if let (Some(prefix), Some(name)) = (of("generateName"), of("name")) {
                    let kept: String = prefix.chars().take(PREFIX_CHARS).collect();
                    let length = name.chars().count();
                    if !prefix.is_empty() && name.starts_with(&kept) && length > SUFFIX_CHARS {
                        let stem: String = name.chars().take(length - SUFFIX_CHARS).collect();
                        let placeholder = format!("{}{}", self.text(&stem), self.number("gen", name));
                        self.literal(name, &placeholder);
                    }
                }
                map.values().for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.learn(value)),
            _ => {}
        }
    }

    /// A value and everything in it.
    pub(super) fn value(&mut self, value: &Value) -> Value {
        self.learn(value);
        self.replace(value, "")
    }

    fn replace(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(map) => {
                let text = |field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default();
                let is_list = (map.get("items").is_some_and(Value::is_array)
                    && text("kind").ends_with("List"))
                    || (text("kind") == "Table" && map.contains_key("columnDefinitions"));
                let mut out = Map::new();
                for (field, value) in map {
                    let last = match field.strip_prefix('/') {
                        Some(pointer) => pointer.rsplit('/').next().unwrap_or_default(),
                        None => field,
                    };
                    let value = match field.rsplit('/').next() {
                        Some("metadata") => without_list_version(value, is_list),
                        _ => Cow::Borrowed(value),
                    };
                    let new = self.replace(&value, last);
                    out.insert(self.text(field), new);
                }
                Value::Object(out)
            }
            Value::Array(items) => items.iter().map(|item| self.replace(item, key)).collect(),
            Value::String(text) => Value::from(self.replace_text(text, key)),
            Value::Number(number) if number.is_i64() || number.is_u64() => {
                if matches!(key, "nodePort" | "healthCheckNodePort") && number.as_i64() != Some(0) {
                    Value::from(self.number("nodePort", &number.to_string()))
                } else {
                    value.clone()
                }
            }
            _ => value.clone(),
        }
    }

    fn replace_text(&mut self, text: &str, key: &str) -> String {
        match key {
            "resourceVersion" if text != "0" && is_number(text) => self.number("rv", text),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "storageVersionHash" => "<hash>".to_owned(),
            "clusterIP" | "clusterIPs" if ADDRESS.is_match(text) && !self.fixed.contains(text) => {
                let placeholder = self.number("ip", text);
                self.literal(text, &placeholder);
                placeholder
            }
            "cells" if AGE.is_match(text) => "<age>".to_owned(),
            "serverAddress" => "<hostport>".to_owned(),
            _ => self.text(text),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The revision of a list, or of metadata that is no object's, says nothing about an object.
fn without_list_version(metadata: &Value, is_list: bool) -> Cow<'_, Value> {
    let Value::Object(map) = metadata else {
        return Cow::Borrowed(metadata);
    };
    let of_object = ["name", "uid", "generateName"]
        .iter()
        .any(|field| map.contains_key(*field));
    let version = map
        .get("resourceVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if (of_object && !is_list) || version.is_empty() {
        return Cow::Borrowed(metadata);
    }
    let mut map = map.clone();
    map.insert("resourceVersion".to_owned(), Value::from("<rv>"));
    Cow::Owned(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn normaliser() -> Normaliser {
        let now = "2026-01-02T03:04:05Z".parse().expect("a time");
        let pattern = Expression::try_from("Bad_[a-z]{3}".to_owned()).expect("an expression");
        let mut normaliser = Normaliser::new(
            vec![(pattern, "Bad_<gen>".to_owned())],
            "10.0.0.7".to_owned(),
            now,
        );
        normaliser.literal("apidiff-x-abc", "${ns}");
        normaliser
    }

    #[rstest]
    #[case("in apidiff-x-abc at 2026-01-02T00:00:00Z", "in ${ns} at <time>")]
    #[case(
        "2026-01-01T00:00:00.123456Z 2026-01-01T00:00:00.1+01:00",
        "<time.6> <time.n><tz>"
    )]
    #[case("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z")]
    #[case("too old resource version: 5 (9)", "too old resource version: <rv> (<rv>)")]
    #[case("v1.36.2+abc on 127.0.0.1:6443", "<version> on <hostport>")]
    #[case("Bad_xyz", "Bad_<gen>")]
    fn texts(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(normaliser().text(text), expected);
    }

    #[rstest]
    #[case(json!({"metadata": {"name": "a", "resourceVersion": "7", "uid": "00000000-0000-4000-8000-000000000001"}}),
           json!({"metadata": {"name": "a", "resourceVersion": "<rv:1>", "uid": "<uid:1>"}}))]
    #[case(json!({"kind": "PodList", "items": [], "metadata": {"resourceVersion": "7", "continue": "abc"}}),
           json!({"kind": "PodList", "items": [], "metadata": {"resourceVersion": "<rv>", "continue": "<continue>"}}))]
    #[case(json!([{"metadata": {"generateName": "w-", "name": "w-abcde"}}, "see w-abcde"]),
           json!([{"metadata": {"generateName": "w-", "name": "w-<gen:1>"}}, "see w-<gen:1>"]))]
    #[case(json!({"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "externalIPs": ["10.0.0.7"], "nodePort": 30001}),
           json!({"clusterIP": "<ip:1>", "clusterIPs": ["<ip:1>"], "externalIPs": ["10.0.0.7"], "nodePort": "<nodePort:1>"}))]
    #[case(json!({"cells": ["a", "5d3h", 3]}), json!({"cells": ["a", "<age>", 3]}))]
    fn values(#[case] value: Value, #[case] expected: Value) {
        assert_eq!(normaliser().value(&value), expected);
    }
}
