//! The patch that brings a status into the pod.

use shared_json::{Array, Map, Value, json};

use crate::meta::ObjectMeta;

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
    let old = pod.get("status").and_then(Value::as_object);
    for (index, (field, value)) in status.iter().enumerate() {
        if field == "conditions" {
            continue;
        }
        if old.and_then(|old| old.get_named(field, index)) != Some(value) {
            changed.insert(field.clone(), value.clone());
        }
    }
    let conditions = |of: Option<&Map>| {
        of.and_then(|status| status.get("conditions"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (old, new) = (conditions(old), conditions(Some(status)));
    let mut differing: Vec<(Option<&Value>, Value)> = new
        .iter()
        .map(|condition| (find(&old, kind_of(condition)), condition))
        .filter(|(before, condition)| *before != Some(*condition))
        .map(|(before, condition)| (before, condition.clone()))
        .collect();
    // A resize is told of only as long as there is one.
    for kind in ["PodResizePending", "PodResizeInProgress"] {
        if find(&old, kind).is_some() && find(&new, kind).is_none() {
            differing.push((None, json!({"$patch": "delete", "type": kind})));
        }
    }
    if changed.is_empty() && differing.is_empty() {
        return None;
    }
    if !differing.is_empty() {
        let others = old
            .iter()
            .map(kind_of)
            .filter(|kind| !KUBELET_CONDITIONS.contains(kind));
        let order: Array = others
            .chain(new.iter().map(kind_of))
            .map(|kind| json!({"type": kind}))
            .collect();
        let differing: Array = differing
            .into_iter()
            .map(|(before, condition)| difference(before, condition))
            .collect();
        changed.insert("$setElementOrder/conditions", Value::Array(order));
        changed.insert("conditions", Value::Array(differing));
    }
    Some(json!({"metadata": {"uid": pod.uid()}, "status": changed}))
}

fn kind_of(condition: &Value) -> &str {
    condition.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| kind_of(condition) == kind)
}

/// What makes one condition the other: the fields that differ, and by name those that it no longer has.
fn difference(old: Option<&Value>, new: Value) -> Value {
    let (Some(old), Value::Object(fields)) = (old.and_then(Value::as_object), &new) else {
        return new;
    };
    let fields = fields.iter().enumerate();
    let mut changed: Map = fields
        .filter(|(index, (name, value))| *name == "type" || old.get_named(name, *index) != Some(*value))
        .map(|(_, (name, value))| (name.clone(), value.clone()))
        .collect();
    for field in ["reason", "message"] {
        if old.contains_key(field) && new.get(field).is_none() {
            changed.insert(field, Value::Null);
        }
    }
    Value::Object(changed)
}
