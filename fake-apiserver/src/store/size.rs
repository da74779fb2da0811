//! How large objects are, and may be.

use std::mem::size_of;

use shared_json::{Name, Value};

use super::event::Stored;
use super::store_impl::CommitError;

/// The largest object that the real server's store takes, in bytes.
const STORED_BYTES_MAX: usize = 1024 * 1024 * 3 / 2;

/// What a new version of an object takes.
pub(super) struct Size {
    /// About how many bytes of memory its fields take that it does not share with the version before.
    pub(super) fresh: usize,
    /// No fewer bytes than it has as JSON, escapes not counted.
    pub(super) max: usize,
}

impl Size {
    /// Only what is new is looked at.
    pub(super) fn of(value: &Value, previous: Option<&Stored>) -> Self {
        let before = previous.and_then(|previous| Some((previous, previous.value.in_memory()?)));
        let fresh = fresh_bytes(value, before.map(|(_, value)| value));
        Self {
            fresh,
            max: before.map_or(0, |(previous, _)| previous.size_max) + fresh,
        }
    }

    /// The same, if the store takes so much.
    ///
    /// # Errors
    /// [`CommitError::TooLarge`].
    pub(super) fn checked(mut self, value: &Value) -> Result<Self, CommitError> {
        if self.max > STORED_BYTES_MAX {
            self.max = size(value);
        }
        if self.max > STORED_BYTES_MAX {
            return Err(CommitError::TooLarge);
        }
        Ok(self)
    }
}

/// What of a value is not the same memory as in `old`: about so many bytes, and no fewer than it has as JSON.
fn fresh_bytes(value: &Value, old: Option<&Value>) -> usize {
    const TEXT: usize = 16;
    if old.is_some_and(|old| old.is_same(value)) {
        return 0;
    }
    let below = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => TEXT + text.len(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| fresh_bytes(item, old.and_then(|old| old.get(index))))
            .sum(),
        Value::Object(map) => {
            let old = old.and_then(Value::as_object);
            map.iter()
                .enumerate()
                .map(|(index, (name, value))| {
                    let old = old.and_then(|old| old.get_named(name, index));
                    size_of::<Name>() + name.len() + fresh_bytes(value, old)
                })
                .sum()
        }
    };
    size_of::<Value>() + below
}

/// About as many bytes as a value has as JSON: escapes are not counted.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| name.len() + 4 + size(value));
            fields.sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared_json::json;

    use super::super::{Change, GroupResource, ObjectKey, Store};
    use super::*;

    #[test]
    fn a_mebibyte_and_a_half_and_no_more() {
        let (store, maps) = (Store::new(), GroupResource::new("", "configmaps"));
        let key = ObjectKey::new("a", "x");
        let mut last: Option<Arc<Stored>> = None;
        let mut put = |length: usize| {
            let mut object = match &last {
                Some(last) => (*last.value).clone(),
                None => json!({"metadata": {"name": "x"}, "data": {}}),
            };
            object["data"]["k"] = json!("x".repeat(length));
            let expected = last.as_ref().map(|last| last.revision);
            let stored = store.commit(&maps, &key, expected, Change::Put(object))?;
            last = Some(stored);
            Ok::<_, CommitError>(())
        };
        // The sum of all that was ever new is more than an object may have; what it has is not.
        let lengths = [
            1_500_000, 1_000_000, 1_400_000, 1_600_000, 10, 1_600_000, 1_500_000,
        ];
        let taken: Vec<bool> = lengths.map(|length| put(length) == Ok(())).into();
        assert_eq!(taken, [true, true, true, false, true, false, true]);
    }

    #[test]
    fn what_is_shared_is_not_counted() {
        let old = json!({"spec": {"a": "x".repeat(1000)}, "status": {"phase": "Pending"}});
        let mut new = old.clone();
        assert_eq!(fresh_bytes(&new, Some(&old)), 0);
        new["status"]["phase"] = json!("Running");
        let fresh = fresh_bytes(&new, Some(&old));
        assert!((50..300).contains(&fresh), "{fresh}");
        assert!(fresh_bytes(&new, None) > 1000 + size(&new["status"]));
    }
}
