//! Reading and writing `metadata` of objects that are JSON values.

use std::sync::LazyLock;

use shared_json::{Array, Map, Text, Value};

use crate::keys::Revision;

/// An object as the API server handles it: `apiVersion`, `kind`, `metadata` and the rest.
pub trait ObjectMeta {
    /// The metadata, if it is an object.
    fn metadata(&self) -> Option<&Map>;
    /// The metadata, made if it is missing or not an object.
    fn metadata_mut(&mut self) -> &mut Map;

    /// A field of the metadata as text; empty if there is none.
    fn meta_str(&self, field: &str) -> &str {
        self.metadata()
            .and_then(|meta| meta.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// `metadata.name`
    fn name(&self) -> &str {
        self.meta_str("name")
    }
    /// `metadata.namespace`; empty for objects without one.
    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    /// `metadata.uid`
    fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    /// `metadata.resourceVersion`
    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    /// The resource version as a position in the order of commits; none if it is no number.
    fn revision(&self) -> Option<Revision> {
        self.resource_version().parse().ok()
    }
    /// A field's text, which is the same memory.
    fn meta_text(&self, field: &str) -> Text {
        match self.metadata().and_then(|meta| meta.get(field)) {
            Some(Value::String(text)) => text.clone(),
            _ => Text::new(),
        }
    }
    /// `metadata.generation`; 0 if there is none.
    fn generation(&self) -> i64 {
        self.metadata()
            .and_then(|meta| meta.get("generation"))
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }
    /// Whether it is to be deleted.
    fn is_terminating(&self) -> bool {
        !self.meta_str("deletionTimestamp").is_empty()
    }
    /// `metadata.finalizers`
    fn finalizers(&self) -> Vec<&str> {
        let list = self
            .metadata()
            .and_then(|meta| meta.get("finalizers"))
            .and_then(Value::as_array);
        list.map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }
    /// Writes a field of the metadata.
    fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        self.metadata_mut().insert(field, value.into());
    }
    /// Copies a metadata field of `from`, or removes it where `from` has none.
    fn copy_meta(&mut self, from: &Value, field: &str) {
        match from.metadata().and_then(|meta| meta.get(field)) {
            Some(value) => self.set_meta(field, value.clone()),
            None => {
                self.metadata_mut().remove(field);
            }
        }
    }
    /// Adds a finalizer, unless it is there.
    fn add_finalizer(&mut self, finalizer: &str) {
        if self.finalizers().contains(&finalizer) {
            return;
        }
        let list = self
            .metadata_mut()
            .entry("finalizers")
            .or_insert_with(|| Value::Array(Array::new()));
        if let Some(list) = list.as_array_mut() {
            list.push(Value::from(finalizer));
        }
    }
    /// Removes a finalizer, and the list with the last one.
    fn remove_finalizer(&mut self, finalizer: &str) {
        let meta = self.metadata_mut();
        if let Some(list) = meta.get_mut("finalizers").and_then(Value::as_array_mut) {
            list.retain(|entry| entry.as_str() != Some(finalizer));
            if list.is_empty() {
                meta.remove("finalizers");
            }
        }
    }
}

static EMPTY: LazyLock<Map> = LazyLock::new(Map::new);

impl ObjectMeta for Value {
    fn metadata(&self) -> Option<&Map> {
        self.get("metadata").and_then(Value::as_object)
    }

    fn metadata_mut(&mut self) -> &mut Map {
        if !self.is_object() {
            *self = Value::Object(Map::new());
        }
        let Value::Object(object) = self else {
            unreachable!("made an object above")
        };
        let meta = object
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        let Value::Object(meta) = meta else {
            unreachable!("made an object above")
        };
        meta
    }
}

/// A map of strings below `metadata`, such as `labels`; empty if there is none.
pub fn string_map<'a>(object: &'a Value, field: &str) -> &'a Map {
    object
        .metadata()
        .and_then(|meta| meta.get(field))
        .and_then(Value::as_object)
        .unwrap_or(&EMPTY)
}

/// Follows a dotted path of plain field names.
pub fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut value, mut rest) = (object, path);
    while !rest.is_empty() {
        // Paths are short: nothing is gained by searching them in words.
        let end = rest.bytes().position(|byte| byte == b'.');
        let (part, after) = end.map_or((rest, ""), |end| (&rest[..end], &rest[end + 1..]));
        if !part.is_empty() {
            value = value.get(part)?;
        }
        rest = after;
    }
    Some(value)
}

/// The text at a dotted path; empty if there is none.
pub fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a dotted path; empty if there is none.
pub fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path)
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default()
}
