//! The patches of a pod's conditions, and of the fields that every update in place writes beside the change.

use jiff::Timestamp;
use kruise_api::labels;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::lifecycle::rfc3339;
use crate::pod::{self, Pod};

/// The patch that says an update in place is over, unless the pod already says so.
pub fn ready_patch(pod: &Pod, now: Timestamp) -> Option<Value> {
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
            ("reason", !old.reason.is_empty()),
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
pub fn start_patch(pod: &Pod, now: Timestamp) -> Option<Value> {
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

/// The client that wants a pod out of service, in the message of its condition `KruisePodReady`.
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
pub fn not_ready_patch(pod: &Pod, key: &str, now: Timestamp) -> Option<Value> {
    add_key(pod, lifecycle_key(key), now)
}

fn add_key(pod: &Pod, key: NotReadyKey, now: Timestamp) -> Option<Value> {
    let mut keys = not_ready_keys(pod);
    if !pod::has_gate(pod, labels::KRUISE_POD_READY) || keys.contains(&key) {
        return None;
    }
    keys.push(key);
    keys.sort();
    Some(kruise_ready_patch(pod, "False", &keys, now))
}

/// The patch that removes the reasons `done`, and puts the pod back into service when they were the last.
pub fn ready_again_patch(pod: &Pod, done: &[&str], now: Timestamp) -> Option<Value> {
    let done: Vec<NotReadyKey> = done.iter().map(|key| lifecycle_key(key)).collect();
    remove_keys(pod, &done, now)
}

fn remove_keys(pod: &Pod, done: &[NotReadyKey], now: Timestamp) -> Option<Value> {
    if !pod::has_gate(pod, labels::KRUISE_POD_READY) || pod::is_true(pod, labels::KRUISE_POD_READY) {
        return None;
    }
    let mut keys = not_ready_keys(pod);
    let before = keys.len();
    keys.retain(|key| !done.contains(key));
    if keys.len() == before {
        return None;
    }
    let status = if keys.is_empty() { "True" } else { "False" };
    Some(kruise_ready_patch(pod, status, &keys, now))
}

fn agents_key(user_agent: &str, key: &str) -> NotReadyKey {
    NotReadyKey {
        user_agent: user_agent.to_owned(),
        key: key.to_owned(),
    }
}

/// The patch that takes a pod out of service for `user_agent`, unless it is for this key. The pod is not ready at once, as the kubelet
/// would find out a moment later.
pub fn taken_out_patch(pod: &Pod, user_agent: &str, key: &str, now: Timestamp) -> Option<Value> {
    let mut patch = add_key(pod, agents_key(user_agent, key), now)?;
    let conditions = patch
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    if let (Some(conditions), true) = (conditions, pod::is_true(pod, "ContainersReady")) {
        conditions.push(json!({
            "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady",
            "message": closed_gates(pod), "lastTransitionTime": rfc3339(now),
        }));
    }
    Some(patch)
}

/// The patch that takes the key of `user_agent` off a pod again, if it has it.
pub fn put_back_patch(pod: &Pod, user_agent: &str, key: &str, now: Timestamp) -> Option<Value> {
    remove_keys(pod, &[agents_key(user_agent, key)], now)
}

/// The kubelet's words for the readiness gates of a pod that are not open, once `KruisePodReady` is not.
fn closed_gates(pod: &Pod) -> String {
    let mut words = Vec::new();
    for gate in &pod.spec.readiness_gates {
        let kind = &*gate.condition_type;
        let status = match pod::condition(pod, kind) {
            _ if kind == labels::KRUISE_POD_READY => Some("False"),
            Some(condition) => Some(&*condition.status),
            None => None,
        };
        match status {
            Some("True") => {}
            Some(status) => words.push(format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\", but {status}"
            )),
            None => words.push(format!(
                "corresponding condition of pod readiness gate \"{kind}\" does not exist."
            )),
        }
    }
    words.join(", ")
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const AGENT: &str = "Agent";

    /// A pod with both gates, out of service for the keys of an agent.
    fn pod(keys: &[&str], other: Option<&str>) -> Pod {
        let list: Vec<Value> = keys
            .iter()
            .map(|key| json!({ "userAgent": AGENT, "key": key }))
            .collect();
        let status = if keys.is_empty() { "True" } else { "False" };
        let mut conditions = vec![
            json!({ "type": "KruisePodReady", "status": status, "message": Value::from(list).to_string() }),
            json!({ "type": "ContainersReady", "status": "True" }),
        ];
        conditions.extend(other.map(|status| json!({ "type": "InPlaceUpdateReady", "status": status })));
        serde_json::from_value(json!({
            "metadata": { "name": "p" },
            "spec": { "readinessGates": [
                { "conditionType": "KruisePodReady" }, { "conditionType": "InPlaceUpdateReady" },
            ] },
            "status": { "conditions": conditions },
        }))
        .unwrap()
    }

    /// The status and keys of a patch, and the message of the pod's readiness.
    fn shown(patch: Option<Value>) -> String {
        let Some(patch) = patch else { return String::new() };
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let keys: Vec<NotReadyKey> =
            serde_json::from_str(conditions[0]["message"].as_str().unwrap()).unwrap();
        let keys: Vec<&str> = keys.iter().map(|key| &*key.key).collect();
        let ready = conditions
            .get(1)
            .map_or("", |ready| ready["message"].as_str().unwrap());
        format!(
            "{} [{}] {ready}",
            conditions[0]["status"].as_str().unwrap(),
            keys.join(" ")
        )
        .trim()
        .to_owned()
    }

    const KRUISE: &str = "the status of pod readiness gate \"KruisePodReady\" is not \"True\", but False";

    #[rstest]
    #[case::first(&[], Some("True"), "n/b", &format!("False [n/b] {KRUISE}"))]
    #[case::sorted(&["n/b"], Some("True"), "n/a", &format!("False [n/a n/b] {KRUISE}"))]
    #[case::twice(&["n/a"], Some("True"), "n/a", "")]
    #[case::another_gate(&[], Some("False"), "n/a", &format!(
        "False [n/a] {KRUISE}, the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False"))]
    #[case::no_condition(&[], None, "n/a", &format!(
        "False [n/a] {KRUISE}, corresponding condition of pod readiness gate \"InPlaceUpdateReady\" does not exist."))]
    fn taken_out(
        #[case] keys: &[&str],
        #[case] other: Option<&str>,
        #[case] key: &str,
        #[case] expect: &str,
    ) {
        let patch = taken_out_patch(&pod(keys, other), AGENT, key, Timestamp::UNIX_EPOCH);
        assert_eq!(shown(patch), expect);
    }

    #[rstest]
    #[case::one_of_two(&["n/a", "n/b"], "n/a", "False [n/b]")]
    #[case::last(&["n/b"], "n/b", "True []")]
    #[case::another(&["n/b"], "n/a", "")]
    #[case::none(&[], "n/a", "")]
    fn put_back(#[case] keys: &[&str], #[case] key: &str, #[case] expect: &str) {
        let patch = put_back_patch(&pod(keys, Some("True")), AGENT, key, Timestamp::UNIX_EPOCH);
        assert_eq!(shown(patch), expect);
    }

    #[test]
    fn a_pod_without_the_gate_stays_in_service() {
        let mut pod = pod(&[], None);
        pod.spec.readiness_gates = Box::default();
        assert_eq!(taken_out_patch(&pod, AGENT, "n/a", Timestamp::UNIX_EPOCH), None);
    }
}
