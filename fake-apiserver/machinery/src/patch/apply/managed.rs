//! `metadata.managedFields`: the owners of fields.

use super::field_set::FieldSet;
use super::interned;
use crate::types::unix_seconds;
use shared_json::{Array, Map, Text, Value};
use std::collections::BTreeMap;

/// The most managers of plain updates that are kept apart; the oldest beyond it are merged.
pub const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// The identity of an owner. Appliers are one owner whatever API version they use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The name the client gave.
    pub name: Text,
    /// Server-side apply, as opposed to any other write.
    pub applies: bool,
    /// The API version; empty for appliers.
    version: Text,
    /// The subresource written to; empty for the object itself.
    pub subresource: Text,
}

/// The fields of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    /// The version that the paths are of.
    pub(super) version: Text,
    pub(super) time: Option<Text>,
    /// The entry that it was read from.
    pub(super) read: Option<Value>,
}

impl Manager {
    /// The owner that a request stands for; an empty name counts as `unknown`.
    pub(super) fn new(name: &str, applies: bool, version: &str, subresource: &str) -> Manager {
        Manager {
            name: if name.is_empty() { "unknown" } else { name }.into(),
            applies,
            version: if applies { "" } else { version }.into(),
            subresource: subresource.into(),
        }
    }

    /// The owner as conflicts name it: `"kubectl"`, `"edit" with subresource "status" using v1`.
    pub(super) fn describe(&self) -> String {
        let mut text = pod_rules::field_error::go_quote(&self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(
                " with subresource {}",
                pod_rules::field_error::go_quote(&self.subresource)
            ));
        }
        if !self.applies {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}

/// All owners of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managed(pub(super) BTreeMap<Manager, Owned>);

impl Managed {
    /// Reads `managedFields`; the error says which entry cannot be read and why.
    pub(super) fn decode(entries: Option<&Value>) -> Result<Managed, String> {
        let mut managed = BTreeMap::new();
        let entries = entries.and_then(Value::as_array).map_or(&[][..], Array::as_slice);
        for (at, entry) in entries.iter().enumerate() {
            let text = |name: &str| match entry.get(name) {
                Some(Value::String(text)) => text.clone(),
                _ => Text::new(),
            };
            let applies = match text("operation").as_str() {
                "Apply" => true,
                "Update" => false,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            let version = text("apiVersion");
            if version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType").as_str() {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {at}"
                    ));
                }
            }
            let manager = Manager {
                name: text("manager"),
                applies,
                version: if applies { Text::new() } else { version.clone() },
                subresource: text("subresource"),
            };
            let owned = Owned {
                fields: entry
                    .get("fieldsV1")
                    .map_or(Ok(FieldSet::default()), interned::decode)?,
                version,
                time: entry.get("time").and_then(Value::as_str).map(|_| text("time")),
                read: Some(entry.clone()),
            };
            managed.insert(manager, owned);
        }
        Ok(Managed(managed))
    }

    /// Writes `managedFields`: appliers first, then the oldest first, then by name, version, subresource.
    pub(super) fn encode(&self) -> Value {
        let mut entries: Vec<(&Manager, &Owned)> = self.0.iter().collect();
        entries.sort_by_key(|(manager, owned)| {
            (
                !manager.applies,
                seconds(owned),
                &manager.name,
                &owned.version,
                &manager.subresource,
            )
        });
        entries
            .into_iter()
            .map(|(manager, owned)| encode_entry(manager, owned))
            .collect()
    }

    /// Merges the oldest plain updates of one version into `ancient-changes` until no more than the maximum are left.
    pub(super) fn cap(&mut self) {
        let updaters = self.0.keys().filter(|manager| !manager.applies);
        if updaters.clone().count() <= UPDATE_MANAGERS_MAX {
            return;
        }
        let mut updaters: Vec<Manager> = updaters.cloned().collect();
        updaters.sort_by_cached_key(|manager| (self.0.get(manager).map_or(0, seconds), identifier(manager)));
        let mut left = updaters.len();
        let mut first_of: BTreeMap<Text, Manager> = BTreeMap::new();
        for manager in updaters {
            if left <= UPDATE_MANAGERS_MAX {
                return;
            }
            let version = manager.version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, manager);
                continue;
            };
            let bucket = Manager::new(ANCIENT, false, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), Owned { time: None, ..owned });
            }
            if let Some(owned) = self.0.remove(&manager)
                && let Some(into) = self.0.get_mut(&bucket)
            {
                into.fields = std::mem::take(&mut into.fields).union(owned.fields);
                into.time = owned.time;
            }
            left -= 1;
        }
    }
}

fn seconds(owned: &Owned) -> i64 {
    owned.time.as_deref().and_then(unix_seconds).unwrap_or(0)
}

/// The text by which the real server sorts owners of one age.
fn identifier(manager: &Manager) -> String {
    let mut fields = vec![format!("\"manager\":{}", Value::from(manager.name.as_str()))];
    fields.push(format!(
        "\"operation\":\"{}\"",
        if manager.applies { "Apply" } else { "Update" }
    ));
    if !manager.version.is_empty() {
        fields.push(format!(
            "\"apiVersion\":{}",
            Value::from(manager.version.as_str())
        ));
    }
    if !manager.subresource.is_empty() {
        fields.push(format!(
            "\"subresource\":{}",
            Value::from(manager.subresource.as_str())
        ));
    }
    format!("{{{}}}", fields.join(","))
}

impl Manager {
    /// Whether an entry is this manager's, and has nothing that is not written.
    fn wrote(&self, entry: &Value) -> bool {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = if self.applies { "Apply" } else { "Update" };
        let length = 5 + usize::from(!self.subresource.is_empty()) + usize::from(entry.get("time").is_some());
        text("manager") == self.name
            && text("operation") == operation
            && text("subresource") == self.subresource
            && !self.name.is_empty()
            && entry.as_object().is_some_and(|map| map.len() == length)
    }

    /// The text by which the real server sorts the owners in a message.
    pub(super) fn sort_key(&self) -> String {
        identifier(self)
    }
}

fn encode_entry(manager: &Manager, owned: &Owned) -> Value {
    let fields = interned::encode(&owned.fields, false);
    // Most owners own what they did before.
    if let Some(read) = &owned.read
        && read.get("fieldsV1").is_some_and(|before| before.is_same(&fields))
        && read.get("time").and_then(Value::as_str) == owned.time.as_deref()
        && read.get("apiVersion").and_then(Value::as_str) == Some(&owned.version)
        && manager.wrote(read)
    {
        return read.clone();
    }
    let mut entry = Map::with_capacity(7);
    entry.insert("apiVersion", owned.version.clone().into());
    entry.insert("fieldsType", "FieldsV1".into());
    entry.insert("fieldsV1", fields);
    if !manager.name.is_empty() {
        entry.insert("manager", manager.name.clone().into());
    }
    let operation = if manager.applies { "Apply" } else { "Update" };
    entry.insert("operation", operation.into());
    if !manager.subresource.is_empty() {
        entry.insert("subresource", manager.subresource.clone().into());
    }
    if let Some(time) = &owned.time {
        entry.insert("time", time.clone().into());
    }
    Value::Object(entry)
}
