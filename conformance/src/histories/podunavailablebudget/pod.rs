//! The judge's view of a pod that a budget guards.

use shared_json::Value;

use crate::history::{Change, ChangeKind, list, text};

/// The beginning of the labels that take a pod out of service.
pub(super) const MARK: &str = "unavailable-pod.kruise.io/";
/// For so long after a change of its image a pod may not run it yet, and need not count: a record of it lasts ten seconds.
const UNSURE_MS: i64 = 11_000;

/// One pod at some moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pod {
    /// Whether it is neither over nor going.
    pub(super) is_active: bool,
    /// Whether it is ready, and nothing takes it out of service.
    pub(super) in_service: bool,
    marked: bool,
    /// Whether it names its budget.
    named: bool,
    image: String,
    changed_ms: Option<i64>,
}

/// How a pod leaves service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// It is deleted or evicted.
    Removal,
    /// It is changed.
    Update,
    /// It fails, or is not ready any more.
    Loss,
}

impl Pod {
    /// The pod after a change.
    pub(super) fn of(change: &Change, before: Option<&Self>) -> Self {
        let pod = &change.object;
        let image = text(pod, "/spec/containers/0/image");
        let changed = before.is_some_and(|before| before.image != image);
        let going = !text(pod, "/metadata/deletionTimestamp").is_empty();
        let over = matches!(text(pod, "/status/phase").as_str(), "Succeeded" | "Failed");
        let is_active = change.kind != ChangeKind::Deleted && !going && !over;
        Self {
            is_active,
            in_service: is_active && is_in_service(pod),
            marked: is_marked(pod),
            named: is_named(pod),
            image,
            changed_ms: match changed {
                true => Some(change.at_ms),
                false => before.and_then(|before| before.changed_ms),
            },
        }
    }

    /// Whether an operation on it surely takes a pod out of service.
    pub(super) fn counts(&self, at_ms: i64) -> bool {
        let sure = self
            .changed_ms
            .is_none_or(|changed_ms| at_ms - changed_ms > UNSURE_MS);
        self.in_service && self.named && sure
    }

    /// How it has left service since `before`; none if it has not.
    pub(super) fn left(&self, before: &Self) -> Option<Leave> {
        let updated = self.image != before.image || self.marked && !before.marked;
        match (before.in_service, self.is_active) {
            (false, _) => None,
            (true, false) => Some(Leave::Removal),
            (true, true) if updated => Some(Leave::Update),
            (true, true) => (!self.in_service).then_some(Leave::Loss),
        }
    }
}

fn is_marked(pod: &Value) -> bool {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().any(|(key, _)| key.starts_with(MARK))
}

/// Whether a pod names its budget.
pub(super) fn is_named(pod: &Value) -> bool {
    text(pod, "/metadata/annotations/kruise.io~1related-pub") == "a"
}

/// Whether a pod is ready, and nothing takes it out of service.
pub(super) fn is_in_service(pod: &Value) -> bool {
    let ready = list(pod, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True");
    ready
        && text(pod, "/status/phase") == "Running"
        && text(pod, "/metadata/deletionTimestamp").is_empty()
        && !is_marked(pod)
}
