//! The patch that brings a status into the pod.

use shared_json::{Array, Map, Value, json};

use super::conditions::condition_of;
use crate::meta::{ObjectMeta, at};

/// The conditions that are the kubelet's own, in the order in which it writes them.
const KUBELET_CONDITIONS: [&str; 8] = [
    "PodResizePending",
    "PodResizeInProgress",
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
];

/// The strategic merge patch that makes `pod` show `status`; `None` if it does already.
pub(in crate::nodes) fn patch(pod: &Value, status: &Map) -> Option<Value> {
    let mut changed = Map::new();
    for (field, value) in status {
        if field == "conditions" {
            continue;
        }
        if at(pod, "status").and_then(|old| old.get(field)) != Some(value) {
            changed.insert(field.clone(), value.clone());
        }
    }
    let new = status
        .get("conditions")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let kind_of = |condition: &Value| {
        condition
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut differing: Array = new
        .iter()
        .filter(|c| condition_of(pod, &kind_of(c)) != Some(*c))
        .cloned()
        .collect();
    // A resize is told of only as long as there is one.
    for kind in ["PodResizePending", "PodResizeInProgress"] {
        if condition_of(pod, kind).is_some() && !new.iter().any(|c| kind_of(c) == kind) {
            differing.push(json!({"$patch": "delete", "type": kind}));
        }
    }
    if changed.is_empty() && differing.is_empty() {
        return None;
    }
    if !differing.is_empty() {
        let old = at(pod, "status.conditions")
            .and_then(Value::as_array)
            .map(Array::as_slice)
            .unwrap_or_default();
        let others = old
            .iter()
            .map(kind_of)
            .filter(|kind| !KUBELET_CONDITIONS.contains(&kind.as_str()));
        let order: Array = others
            .chain(new.iter().map(kind_of))
            .map(|kind| json!({"type": kind}))
            .collect();
        // A field that a condition no longer has must be taken away by name.
        let differing: Array = differing.into_iter().map(|c| with_removals(pod, c)).collect();
        changed.insert("$setElementOrder/conditions".to_owned(), Value::Array(order));
        changed.insert("conditions".to_owned(), Value::Array(differing));
    }
    Some(json!({"metadata": {"uid": pod.uid()}, "status": changed}))
}

fn with_removals(pod: &Value, mut condition: Value) -> Value {
    let kind = condition
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let (Some(old), Some(new)) = (
        condition_of(pod, &kind).and_then(Value::as_object),
        condition.as_object_mut(),
    ) {
        for field in ["reason", "message"] {
            if old.contains_key(field) && !new.contains_key(field) {
                new.insert(field.to_owned(), Value::Null);
            }
        }
    }
    condition
}
