//! Sizes of objects, and their limits.

use std::mem::size_of;

use shared_json::{Name, Value};

/// The largest object that the real server's store takes, in bytes.
const STORED_BYTES_MAX: usize = 1024 * 1024 * 3 / 2;

/// The memory of a value that it does not share with the previous version.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// About so many bytes of memory that it shares with nothing.
    pub(super) fresh: usize,
    /// No fewer bytes than it has as JSON, escapes not counted.
    pub(super) json: usize,
}

impl Size {
    fn own(bytes: usize) -> Self {
        Self {
            fresh: bytes,
            json: bytes,
        }
    }

    /// Of a value itself, without those within.
    pub(super) fn of_shell(value: &Value) -> Self {
        const TEXT: usize = 16;
        let parts = match value {
            Value::String(text) => TEXT + text.len(),
            Value::Object(map) => map.keys().map(|name| size_of::<Name>() + name.len()).sum(),
            _ => 0,
        };
        Self::own(size_of::<Value>() + parts)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.fresh += other.fresh;
        self.json += other.json;
    }

    /// Counts only the parts that are not shared with `old`.
    pub(super) fn of(value: &Value, old: Option<&Value>) -> Self {
        if old.is_some_and(|old| old.is_same(value)) {
            return Self::default();
        }
        let mut size = Self::of_shell(value);
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| size.add(Self::of(item, old.and_then(|old| old.get(index))))),
            Value::Object(map) => {
                let old = old.and_then(Value::as_object);
                for (index, (name, value)) in map.iter().enumerate() {
                    size.add(Self::of(value, old.and_then(|old| old.get_named(name, index))));
                }
            }
            _ => {}
        }
        size
    }

    /// No fewer bytes than the whole has as JSON, if the store takes so many. `before` is that number for the version before.
    pub(super) fn checked(self, value: &Value, before: usize) -> Option<usize> {
        let mut max = self.max(before);
        if max > STORED_BYTES_MAX {
            max = json_bytes(value);
        }
        (max <= STORED_BYTES_MAX).then_some(max)
    }

    /// No fewer bytes than the whole has as JSON.
    pub(super) fn max(self, before: usize) -> usize {
        before + self.json
    }
}

/// About as many bytes as a value has as JSON: escapes are not counted.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| name.len() + 4 + json_bytes(value));
            fields.sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    #[test]
    fn what_is_shared_is_not_counted() {
        let old = json!({"spec": {"a": "x".repeat(1000)}, "status": {"phase": "Pending"}});
        let mut new = old.clone();
        assert_eq!(Size::of(&new, Some(&old)).fresh, 0);
        new["status"]["phase"] = json!("Running");
        let fresh = Size::of(&new, Some(&old)).fresh;
        assert!((50..300).contains(&fresh), "{fresh}");
        assert!(Size::of(&new, None).json > 1000 + json_bytes(&new["status"]));
    }
}
