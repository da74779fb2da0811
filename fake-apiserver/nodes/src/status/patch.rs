//! The patch that brings a status into the pod.

use std::sync::LazyLock;

use machinery::meta::ObjectMeta;
use shared_json::{Array, Map, Value, json};

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
pub(crate) fn patch(pod: &Value, status: &Map) -> Option<Value> {
    let mut changed = Map::new();
    let old = pod.get("status").and_then(Value::as_object);
    for (index, (field, value)) in status.iter().enumerate() {
        if field == "conditions" {
            continue;
        }
        if old.and_then(|old| old.get_named(field, index)) != Some(value) {
            changed.insert(field.clone(), value.clone());
        }
    }
    let (old, new) = (conditions(old), conditions(Some(status)));
    let mut differing: Array = new
        .iter()
        .filter_map(|(kind, condition)| match find(&old, kind) {
            Some(before) if before == *condition => None,
            before => Some(difference(before, condition)),
        })
        .collect();
    // A resize is told of only as long as there is one.
    for kind in ["PodResizePending", "PodResizeInProgress"] {
        if find(&old, kind).is_some() && find(&new, kind).is_none() {
            differing.push(json!({"$patch": "delete", "type": kind}));
        }
    }
    if changed.is_empty() && differing.is_empty() {
        return None;
    }
    if !differing.is_empty() {
        let others = old.iter().map(|(kind, _)| *kind);
        let others = others.filter(|kind| !KUBELET_CONDITIONS.contains(kind));
        let order: Array = others
            .chain(new.iter().map(|(kind, _)| *kind))
            .map(place_of)
            .collect();
        changed.insert("$setElementOrder/conditions", Value::Array(order));
        changed.insert("conditions", Value::Array(differing));
    }
    Some(json!({"metadata": {"uid": pod.uid()}, "status": changed}))
}

/// The conditions of a status, with their types.
fn conditions(status: Option<&Map>) -> Vec<(&str, &Value)> {
    let conditions = status.and_then(|status| status.get("conditions"));
    let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions
        .map(|condition| {
            let kind = condition.get("type").and_then(Value::as_str);
            (kind.unwrap_or_default(), condition)
        })
        .collect()
}

fn find<'a>(conditions: &[(&str, &'a Value)], kind: &str) -> Option<&'a Value> {
    let found = conditions.iter().find(|(known, _)| *known == kind);
    found.map(|(_, condition)| *condition)
}

/// How an order names a condition. Those of the kubelet are the same in all patches.
fn place_of(kind: &str) -> Value {
    static KNOWN: LazyLock<[Value; 8]> =
        LazyLock::new(|| KUBELET_CONDITIONS.map(|kind| json!({"type": kind})));
    let index = KUBELET_CONDITIONS.iter().position(|known| *known == kind);
    let known = index.and_then(|index| KNOWN.get(index)).cloned();
    known.unwrap_or_else(|| json!({"type": kind}))
}

/// The patch from one condition to the other: the fields that differ, and by name those that it no longer has.
fn difference(old: Option<&Value>, new: &Value) -> Value {
    let (Some(old), Some(fields)) = (old.and_then(Value::as_object), new.as_object()) else {
        return new.clone();
    };
    let mut changed = Map::with_capacity(fields.len());
    for (index, (name, value)) in fields.iter().enumerate() {
        if name == "type" || old.get_named(name, index) != Some(value) {
            changed.insert(name.clone(), value.clone());
        }
    }
    for field in ["reason", "message"] {
        if old.contains_key(field) && !fields.contains_key(field) {
            changed.insert(field, Value::Null);
        }
    }
    Value::Object(changed)
}
