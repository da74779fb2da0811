//! An event of the core API as a recorder makes it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use shared_json::{Value, json};

use super::cache::{Digest, Words};

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something that may need attention.
    Warning,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// The reporter of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSource {
    /// The component, such as `cloneset-controller` or `kubelet`.
    pub component: String,
    /// The node it runs on, where that matters (the kubelet's events).
    pub host: Option<String>,
    /// Whether `reportingComponent` and `reportingInstance` repeat component and host. Recorders of client-go 0.27 and
    /// later do (the kubelet); older ones leave both empty (OpenKruise up to 1.5).
    pub reporting: bool,
}

/// One `v1` Event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `metadata.name`: `<object's name>.<time in nanoseconds, hexadecimal>`.
    pub name: String,
    /// The object it is about.
    pub object: ObjectReference,
    /// The reporter.
    pub source: EventSource,
    /// How serious it is.
    pub kind: EventType,
    /// A word in CamelCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// When it was seen first; written in whole seconds.
    pub first: Timestamp,
    /// When it was seen last; written in whole seconds.
    pub last: Timestamp,
    /// How often it was seen.
    pub count: u32,
    /// Its annotations; as a rule there are none.
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    /// The namespace the event lives in: the object's, or `default` for an object without one.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.object
            .namespace
            .as_deref()
            .filter(|name| !name.is_empty())
            .unwrap_or("default")
    }

    /// The object that a create request sends, with the empty fields that Go's encoder writes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut source = json!({ "component": self.source.component });
        if let (Some(host), Some(map)) = (&self.source.host, source.as_object_mut()) {
            map.insert("host".to_owned(), json!(host));
        }
        let reporting = |text: &str| {
            if self.source.reporting {
                text.to_owned()
            } else {
                String::new()
            }
        };
        let mut metadata = json!({ "name": self.name, "namespace": self.namespace() });
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        json!({
            "apiVersion": "v1",
            "count": self.count,
            "eventTime": null,
            "firstTimestamp": seconds(self.first),
            "involvedObject": self.object,
            "kind": "Event",
            "lastTimestamp": seconds(self.last),
            "message": self.message,
            "metadata": metadata,
            "reason": self.reason,
            "reportingComponent": reporting(&self.source.component),
            "reportingInstance": reporting(self.source.host.as_deref().unwrap_or_default()),
            "source": source,
            "type": self.kind.to_string(),
        })
    }

    /// The strategic merge patch that raises the count of an event that exists.
    #[must_use]
    pub fn to_patch(&self) -> Value {
        json!({ "count": self.count, "lastTimestamp": seconds(self.last), "message": self.message })
    }

    /// The keys by which it is known.
    pub(crate) fn keys(&self) -> Keys {
        let object = &self.object;
        let mut words = Words::default();
        words.add(&self.source.component);
        for word in [
            &self.source.host,
            &object.kind,
            &object.namespace,
            &object.name,
            &object.uid,
            &object.api_version,
        ] {
            words.add(word.as_deref().unwrap_or_default());
        }
        // Recorders of today count warnings apart (seen of a kubelet 1.36: 25 normal ones and 6 warnings).
        let is_apart = self.source.reporting && self.kind == EventType::Warning;
        words.add(if is_apart { "Warning" } else { "" });
        let source = words.digest();
        words.add(match self.kind {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        });
        words.add(&self.reason);
        words.add(if self.source.reporting { "reporting" } else { "" });
        let similar = words.digest();
        words.add(object.field_path.as_deref().unwrap_or_default());
        words.add(&self.message);
        Keys {
            source,
            similar,
            same: words.digest(),
        }
    }
}

/// The keys by which events are known.
pub(crate) struct Keys {
    /// Those of one source about one object: so many of them may be written.
    pub source: Digest,
    /// Those that differ in no more than the message (and the field path, which client-go leaves out too).
    pub similar: Digest,
    /// Those that are the same.
    pub same: Digest,
}

/// `metav1.Time` on the wire.
fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
