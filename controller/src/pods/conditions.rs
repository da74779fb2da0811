//! The patches of a pod's conditions, and of what every update in place writes beside the change.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::labels;
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::{self, Pod};

/// The patch that says an update in place is over, unless the pod already says so.
pub(crate) fn ready_patch(pod: &Pod, now: Timestamp) -> Option<Value> {
    if !pod::has_gate(pod, labels::IN_PLACE_READY) || pod::is_true(pod, labels::IN_PLACE_READY) {
        return None;
    }
    let mut condition =
        json!({ "type": labels::IN_PLACE_READY, "status": "True", "lastTransitionTime": rfc3339(now) });
    if let (Some(old), Some(new)) = (
        pod::condition(pod, labels::IN_PLACE_READY),
        condition.as_object_mut(),
    ) {
        for (field, is_set) in [
            ("reason", old.reason.is_some()),
            ("message", old.message.is_some()),
        ] {
            if is_set {
                new.insert(field.to_owned(), Value::Null);
            }
        }
    }
    Some(json!({ "status": { "conditions": [condition] } }))
}

/// The patch that takes a pod out of service for an update in place, if it has the gate for it.
pub(crate) fn start_patch(pod: &Pod, now: Timestamp) -> Option<Value> {
    if !pod::has_gate(pod, labels::IN_PLACE_READY) {
        return None;
    }
    let time = rfc3339(now);
    let mut conditions = vec![json!({
        "type": labels::IN_PLACE_READY, "status": "False", "reason": labels::START_IN_PLACE_UPDATE,
        "lastTransitionTime": time,
    })];
    // The kubelet would find out a moment later; until then the pod would count as ready.
    if pod::is_true(pod, "ContainersReady") && pod::is_ready(pod) {
        conditions.push(json!({
            "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady",
            "message": "the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False",
            "lastTransitionTime": time,
        }));
    }
    Some(json!({ "status": { "conditions": conditions } }))
}

/// Who wants a pod out of service, in the message of its condition `KruisePodReady`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct NotReadyKey {
    #[serde(rename = "userAgent")]
    user_agent: String,
    key: String,
}

fn not_ready_keys(pod: &Pod) -> Vec<NotReadyKey> {
    let condition = pod::condition(pod, labels::KRUISE_POD_READY);
    let message = condition
        .and_then(|condition| condition.message.as_deref())
        .unwrap_or_default();
    serde_json::from_str(message).unwrap_or_default()
}

fn lifecycle_key(key: &str) -> NotReadyKey {
    NotReadyKey {
        user_agent: "Lifecycle".to_owned(),
        key: key.to_owned(),
    }
}

/// The patch that adds a reason for the pod to be out of service, unless it is there.
pub(crate) fn not_ready_patch(pod: &Pod, key: &str, now: Timestamp) -> Option<Value> {
    let mut keys = not_ready_keys(pod);
    let key = lifecycle_key(key);
    if !pod::has_gate(pod, labels::KRUISE_POD_READY) || keys.contains(&key) {
        return None;
    }
    keys.push(key);
    keys.sort();
    Some(kruise_ready_patch(pod, "False", &keys, now))
}

/// The patch that removes the reasons `done`, and puts the pod back into service when they were the last.
pub(crate) fn ready_again_patch(pod: &Pod, done: &[&str], now: Timestamp) -> Option<Value> {
    if !pod::has_gate(pod, labels::KRUISE_POD_READY) || pod::is_true(pod, labels::KRUISE_POD_READY) {
        return None;
    }
    let mut keys = not_ready_keys(pod);
    let before = keys.len();
    keys.retain(|key| !done.iter().any(|done| *key == lifecycle_key(done)));
    if keys.len() == before {
        return None;
    }
    let status = if keys.is_empty() { "True" } else { "False" };
    Some(kruise_ready_patch(pod, status, &keys, now))
}

fn kruise_ready_patch(pod: &Pod, status: &str, keys: &[NotReadyKey], now: Timestamp) -> Value {
    let message = serde_json::to_string(keys).unwrap_or_default();
    let mut condition = json!({ "type": labels::KRUISE_POD_READY, "status": status, "message": message });
    let before = pod::condition(pod, labels::KRUISE_POD_READY).map(|condition| &*condition.status);
    if let (true, Some(map)) = (before != Some(status), condition.as_object_mut()) {
        map.insert("lastTransitionTime".to_owned(), json!(rfc3339(now)));
    }
    json!({ "status": { "conditions": [condition] } })
}
