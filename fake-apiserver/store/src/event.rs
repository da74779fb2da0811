//! Stored objects and the changes to them.

use std::cell::RefCell;
use std::io::Write as _;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use client_kit::LocalEvent;
use machinery::keys::{ObjectKey, Revision};
use shared_json::{Value, json};

use super::size::Size;

/// An object's fields, its encoding, or both: one is made of the other when it is first asked for.
#[derive(Debug)]
pub struct Held {
    value: OnceLock<Value>,
    encoded: OnceLock<Encoded>,
    /// The object as all watchers of this process are given it, without its owners.
    local: OnceLock<Arc<Value>>,
    /// The managed fields that `lean` lacks, for when the fields are not kept as a whole.
    owners: Option<Value>,
}

/// The field of the metadata that watchers of this process are not given.
const OWNERS: &str = "managedFields";

impl Held {
    fn new(value: OnceLock<Value>, encoded: OnceLock<Encoded>) -> Self {
        Self {
            value,
            encoded,
            local: OnceLock::new(),
            owners: None,
        }
    }

    fn of_value(value: Value) -> Self {
        Self::new(OnceLock::from(value), OnceLock::new())
    }

    pub(super) fn of_encoded(encoded: Encoded) -> Self {
        Self::new(OnceLock::new(), OnceLock::from(encoded))
    }

    /// Its encoding alone, in which it takes a fraction of the memory.
    fn cold(&self) -> Self {
        Self::of_encoded(self.encoded().clone())
    }

    /// The form for watchers of this process: the lean fields and the managed fields, so that nothing is in memory twice. None
    /// if the event has this form already, or if it has no such watchers.
    fn settled(&self) -> Option<Self> {
        let (value, local) = (self.value.get()?, self.local.get()?);
        Some(Self {
            value: OnceLock::new(),
            encoded: self.encoded.clone(),
            local: OnceLock::from(Arc::clone(local)),
            owners: value
                .get("metadata")
                .and_then(|metadata| metadata.get(OWNERS))
                .cloned(),
        })
    }

    /// Its fields without an encoding, for a version that another has followed: they have nearly all in common with the next one's.
    /// None if there is no encoding, or nothing else.
    fn followed(&self) -> Option<Self> {
        if self.encoded.get().is_none() || !self.is_in_memory() {
            return None;
        }
        let fields = self.settled().unwrap_or_else(|| Self {
            value: self.value.clone(),
            encoded: OnceLock::new(),
            local: self.local.clone(),
            owners: self.owners.clone(),
        });
        Some(Self {
            encoded: OnceLock::new(),
            ..fields
        })
    }

    pub(super) fn encoded(&self) -> &Encoded {
        self.encoded.get_or_init(|| match self.value.get() {
            Some(value) => Encoded::new(value),
            None => Encoded::new(&self.make()),
        })
    }

    fn local(&self) -> &Arc<Value> {
        self.local.get_or_init(|| match self.value.get() {
            Some(value) => LocalEvent::object(value),
            None => LocalEvent::object(&self.make()),
        })
    }

    /// The whole fields, put together from the parts that are kept.
    fn make(&self) -> Value {
        let Some(local) = self.local.get() else {
            // What was encoded from a value decodes.
            let encoded = self.encoded.get().map(|encoded| &encoded.bytes[..]);
            return shared_json::from_slice(encoded.unwrap_or_default()).unwrap_or_default();
        };
        let mut value = (**local).clone();
        if let (Some(owners), Some(metadata)) = (&self.owners, value.get_mut("metadata"))
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.insert(OWNERS, owners.clone());
        }
        value
    }

    /// Whether it has been encoded.
    pub(super) fn is_encoded(&self) -> bool {
        self.encoded.get().is_some()
    }

    fn is_in_memory(&self) -> bool {
        self.value.get().is_some() || self.local.get().is_some()
    }

    /// The fields, if they are in memory. If not, they are not made.
    pub(super) fn in_memory(&self) -> Option<&Value> {
        self.is_in_memory().then(|| &**self)
    }

    /// Gives the fields without `managedFields` to `look`; does not keep them if they had to be decoded.
    pub fn with<T>(&self, look: impl FnOnce(&Value) -> T) -> T {
        match self
            .value
            .get()
            .or_else(|| self.local.get().map(|local| &**local))
        {
            Some(value) => look(value),
            None => look(&self.make()),
        }
    }
}

impl Deref for Held {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value.get_or_init(|| self.make())
    }
}

/// One version of one object. Encoded at most once; every reader and watcher shares those bytes.
#[derive(Debug)]
pub struct Stored {
    /// The object's name.
    pub key: ObjectKey,
    /// The revision at which this version was written.
    pub revision: Revision,
    /// The revision at which the object was created.
    pub created: Revision,
    /// The object, in its storage version, `metadata.resourceVersion` included.
    pub value: Held,
    /// No fewer bytes than the object has as JSON, escapes not counted.
    pub(super) size_max: usize,
    /// Its metadata as watchers of this process are given them, with the version of that form.
    local_metadata: OnceLock<(&'static str, Arc<Value>)>,
}

/// An object as JSON.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) bytes: Bytes,
    /// Where the fields after `kind` and `apiVersion` begin.
    pub(super) rest: usize,
}

/// The capacity that the encoding buffer keeps after a large object.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Encoded {
    /// Encodes an object with `kind` and `apiVersion` first, as the real server does, so that they can be left out or
    /// replaced without encoding the rest again.
    ///
    /// The value is written into a reused buffer and then copied. A copy has the size of the encoding, where a vector that
    /// has grown is up to twice that.
    fn new(value: &Value) -> Self {
        BUFFER.with_borrow_mut(|out| {
            out.clear();
            let rest = Self::write(value, out);
            let bytes = Bytes::copy_from_slice(out);
            out.shrink_to(BUFFER_BYTES_KEPT);
            Self { bytes, rest }
        })
    }

    /// Writes it; gives where the fields after `kind` and `apiVersion` begin.
    fn write(value: &Value, out: &mut Vec<u8>) -> usize {
        let rest = Self::write_plain(value, out);
        // The first fields are names of types, which need no escape.
        shared_json::go_escape_from(out, rest);
        rest
    }

    fn write_plain(value: &Value, out: &mut Vec<u8>) -> usize {
        let Some(map) = value.as_object() else {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "{value}");
            return 0;
        };
        out.push(b'{');
        for field in ["kind", "apiVersion"] {
            if let Some(value) = map.get(field) {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "\"{field}\":{value},");
            }
        }
        let rest = out.len();
        for (field, value) in map
            .iter()
            .filter(|(field, _)| !matches!(field.as_str(), "kind" | "apiVersion"))
        {
            let _ = shared_json::to_writer(&mut *out, field);
            out.push(b':');
            let _ = shared_json::to_writer(&mut *out, value);
            out.push(b',');
        }
        if out.last() == Some(&b',') {
            out.pop();
        }
        // Where nothing follows the kind, the rest is the closing brace alone.
        let rest = rest.min(out.len());
        out.push(b'}');
        rest
    }
}

impl Stored {
    pub(super) fn new(
        key: ObjectKey,
        revision: Revision,
        created: Revision,
        value: Value,
        size_max: usize,
    ) -> Self {
        Self::held(key, revision, created, Held::of_value(value), size_max)
    }

    pub(super) fn held(
        key: ObjectKey,
        revision: Revision,
        created: Revision,
        value: Held,
        size_max: usize,
    ) -> Self {
        Self {
            key,
            revision,
            created,
            value,
            size_max,
            local_metadata: OnceLock::new(),
        }
    }

    /// An object that is shown like those of a store, and is in none. It has no revision.
    #[must_use]
    pub fn unkept(key: ObjectKey, value: Value) -> Self {
        Self::alone(key, Revision(0), Revision(0), value)
    }

    /// A version that nothing is known of before it.
    pub(super) fn alone(key: ObjectKey, revision: Revision, created: Revision, value: Value) -> Self {
        let size_max = Size::of(&value, None).json;
        Self::new(key, revision, created, value, size_max)
    }

    /// The same version in little memory, until its fields are asked for.
    pub(super) fn cold(&self) -> Self {
        let (key, value) = (self.key.clone(), self.value.cold());
        Self::held(key, self.revision, self.created, value, self.size_max)
    }

    /// The same version as it is kept for watchers of this process.
    pub(super) fn settled(self: &Arc<Self>) -> Arc<Self> {
        let Some(value) = self.value.settled() else {
            return Arc::clone(self);
        };
        let key = self.key.clone();
        Arc::new(Self::held(key, self.revision, self.created, value, self.size_max))
    }

    /// The same version as it is kept for watchers of this process once another has followed.
    pub(super) fn followed(self: &Arc<Self>) -> Arc<Self> {
        let Some(value) = self.value.followed() else {
            return self.settled();
        };
        let key = self.key.clone();
        Arc::new(Self::held(key, self.revision, self.created, value, self.size_max))
    }

    /// The same version in little memory if that costs nothing, because it has been encoded.
    pub fn light(self: &Arc<Self>) -> Arc<Self> {
        match self.value.is_encoded() {
            true => Arc::new(self.cold()),
            false => Arc::clone(self),
        }
    }

    /// The object as watchers of this process are given it: one for all of them.
    pub fn local(&self) -> Arc<Value> {
        Arc::clone(self.value.local())
    }

    /// The same of its metadata, in a version of `meta.k8s.io`.
    pub fn local_metadata(&self, api_version: &'static str) -> Arc<Value> {
        let make = || {
            // Both forms have their metadata in common.
            let object = self.local();
            let metadata = object.get("metadata").cloned().unwrap_or_default();
            Arc::new(
                json!({"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}),
            )
        };
        match self.local_metadata.get_or_init(|| (api_version, make())) {
            (version, object) if *version == api_version => Arc::clone(object),
            _ => make(),
        }
    }

    fn encoded(&self) -> &Encoded {
        self.value.encoded()
    }

    /// The object as JSON.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.encoded().bytes.clone()
    }

    /// The object as JSON without `kind`, `apiVersion` and the opening brace: how it continues in a list of its kind.
    #[must_use]
    pub fn bytes_after_kind(&self) -> Bytes {
        let encoded = self.encoded();
        encoded.bytes.slice(encoded.rest..)
    }
}

/// The kind of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It did not exist before.
    Added,
    /// It was replaced.
    Modified,
    /// It is gone.
    Deleted,
}

impl EventKind {
    /// The kind's name in a watch.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One commit.
#[derive(Debug)]
pub struct Event {
    /// The commit's place in the global order.
    pub revision: Revision,
    /// The kind of the commit.
    pub kind: EventKind,
    /// The object after the commit; for a deletion its last state, under the deletion's revision.
    pub object: Arc<Stored>,
    /// The object before the commit.
    pub previous: Option<Arc<Stored>>,
    /// The approximate memory in bytes of the object's fields that are not shared with the previous version.
    pub(super) fresh_bytes: usize,
    frame: OnceLock<Bytes>,
}

impl Event {
    pub(super) fn new(
        kind: EventKind,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
        fresh_bytes: usize,
    ) -> Self {
        Self {
            revision: object.revision,
            kind,
            object,
            previous,
            fresh_bytes,
            frame: OnceLock::new(),
        }
    }

    /// The event as a watch of everything sends it; encoded once, shared by all such watches.
    #[must_use]
    pub fn frame(&self) -> Bytes {
        self.frame
            .get_or_init(|| watch_frame(self.kind.as_str(), &self.object.bytes()))
            .clone()
    }
}

/// One line of a watch.
#[must_use]
pub fn watch_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + kind.len() + 24);
    write_frame(&mut out, kind, object);
    Bytes::from(out)
}

pub(super) fn write_frame(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"apiVersion": "v1", "data": {}, "kind": "ConfigMap", "metadata": {"name": "x"}}), r#""data":{},"metadata":{"name":"x"}}"#)]
    #[case(json!({"apiVersion": "v1", "kind": "X"}), "}")]
    #[case(json!({"a": 1}), r#""a":1}"#)]
    #[case(json!({}), "}")]
    fn encodes_kind_first(#[case] value: Value, #[case] rest: &str) {
        let stored = Stored::alone(ObjectKey::new("", "x"), Revision(1), Revision(1), value.clone());
        assert_eq!(
            shared_json::from_slice::<Value>(&stored.bytes()).expect("JSON"),
            value
        );
        assert_eq!(stored.bytes_after_kind(), rest);
    }
}
