//! The judge's view of a pod.

use shared_json::Value;

/// Where a pod says in which state of its life it is.
pub(super) const STATE: &str = "lifecycle.apps.kruise.io/state";
/// The label that marks a pod to be deleted.
pub(super) const MARK: &str = "apps.kruise.io/specified-delete";

/// One pod at some moment, with its past.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pod {
    pub(super) uid: String,
    /// Whether it is held before it is deleted.
    pub(super) held: bool,
    /// Whether it is marked to be deleted.
    pub(super) marked: bool,
    pub(super) revision: String,
    image: String,
    /// How often its image changed.
    pub(super) images: i64,
    pub(super) restarts: i64,
    /// Since when it is ready.
    ready_since_ms: Option<i64>,
    /// Whether a hook holds it: then it may go at any time.
    hooked: bool,
    /// Whether it terminates, or has ended.
    pub(super) ends: bool,
}

impl Pod {
    /// The pod after a change at `at_ms`.
    pub(super) fn of(object: &Value, before: Option<&Self>, at_ms: i64) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let label = |key: &str| {
            let labels = object.pointer("/metadata/labels");
            labels.and_then(|labels| labels.get(key)?.as_str())
        };
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let image = text("/spec/containers/0/image");
        let changed = before.is_some_and(|before| before.image != image);
        Self {
            uid: text("/metadata/uid"),
            held: label(STATE) == Some("PreparingDelete"),
            marked: label(MARK).is_some(),
            revision: text("/metadata/labels/controller-revision-hash"),
            images: before.map_or(0, |before| before.images) + i64::from(changed),
            image,
            restarts: object
                .pointer("/status/containerStatuses/0/restartCount")
                .and_then(Value::as_i64)
                .unwrap_or(0),
            hooked: !matches!(label(STATE), None | Some("Normal")),
            ready_since_ms: ready.then(|| before.and_then(|before| before.ready_since_ms).unwrap_or(at_ms)),
            ends: !text("/metadata/deletionTimestamp").is_empty()
                || matches!(text("/status/phase").as_str(), "Failed" | "Succeeded"),
        }
    }

    /// Whether it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready_since_ms.is_some()
    }

    /// Whether it has been ready for so long at `at_ms`, by any clock.
    pub(super) fn is_surely_available(&self, min_ready_ms: i64, at_ms: i64) -> bool {
        self.is_available(min_ready_ms + 1000, at_ms)
    }

    /// Whether it has been ready for so long at `at_ms`. Times in objects are whole seconds, so that it may be up to one
    /// second early.
    pub(super) fn is_available(&self, min_ready_ms: i64, at_ms: i64) -> bool {
        let slack_ms = min_ready_ms.min(1000);
        !self.ends
            && !self.hooked
            && self
                .ready_since_ms
                .is_some_and(|since| at_ms - since >= min_ready_ms - slack_ms)
    }
}
