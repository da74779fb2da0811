//! Reading an object's fields by path.

use jiff::Timestamp;
use machinery::meta::at;
use shared_json::{Array, Map, Value};

use super::age::age;
use super::{NONE, UNSET};

/// An object (or a part of one) and the time at which it is looked at.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub object: &'a Value,
    pub now: Timestamp,
}

impl<'a> Fields<'a> {
    pub(super) fn get(self, path: &str) -> Option<&'a Value> {
        at(self.object, path)
    }

    pub(super) fn has(self, path: &str) -> bool {
        self.get(path).is_some_and(|value| !value.is_null())
    }

    /// The text at a path; empty if there is none.
    pub(super) fn text(self, path: &str) -> &'a str {
        self.get(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number at a path; 0 if there is none.
    pub(super) fn number(self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The list at a path; empty if there is none.
    pub(super) fn list(self, path: &str) -> &'a [Value] {
        let list = self.get(path).and_then(Value::as_array);
        list.map(Array::as_slice).unwrap_or_default()
    }

    /// The parts of a list.
    pub(super) fn parts(
        self,
        path: &str,
    ) -> impl DoubleEndedIterator<Item = Fields<'a>> + ExactSizeIterator + use<'a> {
        let now = self.now;
        self.list(path).iter().map(move |object| Fields { object, now })
    }

    pub(super) fn map(self, path: &str) -> Option<&'a Map> {
        self.get(path).and_then(Value::as_object)
    }

    /// How long ago the time at a path was.
    pub(super) fn age(self, path: &str) -> String {
        age(self.text(path), self.now)
    }

    /// The text at a path, or `<none>`.
    pub(super) fn or_none(self, path: &str) -> Value {
        or(self.text(path), NONE)
    }

    /// The text at a path, or `<unset>`.
    pub(super) fn or_unset(self, path: &str) -> Value {
        or(self.text(path), UNSET)
    }

    /// A number or text as text.
    pub(super) fn plain(self, path: &str) -> Option<String> {
        self.get(path).and_then(plain)
    }

    /// Whether the condition of this type has this status.
    pub(super) fn condition(self, kind: &str, status: &str) -> bool {
        self.parts("status.conditions")
            .any(|condition| condition.text("type") == kind && condition.text("status") == status)
    }
}

/// `text`, or `fallback` where it is empty.
pub(super) fn or(text: &str, fallback: &str) -> Value {
    Value::from(if text.is_empty() { fallback } else { text })
}

/// A number or text (such as a quantity, or an int-or-string) as text.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The first `max` entries and how many more there are.
pub(super) fn first(entries: &[String], max: usize, between: &str) -> String {
    let shown = entries
        .get(..max.min(entries.len()))
        .unwrap_or_default()
        .join(between);
    match entries.len().checked_sub(max) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ => shown,
    }
}
