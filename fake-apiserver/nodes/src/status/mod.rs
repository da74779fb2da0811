//! A pod's status from its kubelet: pure. (The node's record, the pod) → the status, and the patch to it.
//!
//! [`record`] is a node's knowledge of a pod; [`containers`], [`conditions`] and [`phase`] are the parts of the status;
//! [`patch`] is how they get into the pod.

mod conditions;
mod containers;
mod patch;
mod phase;
mod record;

use machinery::meta::{ObjectMeta, at};
use shared_json::{Map, Value, json};

pub(super) use conditions::{backdate_ready, condition_of, is_ready};
pub(super) use containers::{items, name_of, restart_policy, restarts_all, should_restart};
pub(super) use patch::patch;
pub(super) use record::{ContainerRecord, Ended, Instance, Kind, PodRecord, ResizeCondition};

/// The status that the kubelet would have the pod show, as far as it is the kubelet's.
pub(super) fn status(record: &PodRecord, pod: &Value, now: &str) -> Map {
    let generation = pod.generation();
    let phase = phase::phase(record, pod);
    let mut out = Map::new();
    let mut put = |field: &str, value: Value| out.insert(field, value);
    if let (true, Some((reason, message))) = (record.refused, &record.failure) {
        put("phase", Value::from(phase));
        put("startTime", Value::from(record.start_time.clone()));
        put("reason", Value::from(reason.clone()));
        put("message", Value::from(message.clone()));
        return out;
    }
    // A phase that is never left, and why, are told only when nothing of the pod runs any more.
    let early = !record.over && is_final(phase) && !is_final(shown_phase(pod));
    put(
        "conditions",
        Value::from(conditions::conditions(record, pod, phase, early, now)),
    );
    for (field, kinds) in [
        ("initContainerStatuses", &[Kind::Init, Kind::Sidecar][..]),
        ("containerStatuses", &[Kind::Regular][..]),
        ("ephemeralContainerStatuses", &[Kind::Ephemeral][..]),
    ] {
        let statuses = containers::statuses(record, pod, kinds);
        if !statuses.is_empty() {
            put(field, Value::from(statuses));
        }
    }
    put(
        "phase",
        Value::from(if early {
            phase::before_the_end(record)
        } else {
            phase
        }),
    );
    put("startTime", Value::from(record.start_time.clone()));
    put("hostIP", Value::from(record.host_ip.clone()));
    put("hostIPs", json!([{"ip": record.host_ip}]));
    if generation > 0 {
        put("observedGeneration", Value::from(generation));
    }
    if record.had_sandbox && record.shows_address {
        let ip = if is_host_network(pod) {
            &record.host_ip
        } else {
            &record.pod_ip
        };
        put("podIP", Value::from(ip.clone()));
        put("podIPs", json!([{"ip": ip}]));
    }
    match &record.failure {
        Some(_) if early => {}
        Some((reason, message)) => {
            put("reason", Value::from(reason.clone()));
            put("message", Value::from(message.clone()));
        }
        // What another writer said of a pod that still runs here is taken away again.
        None => {
            for field in ["reason", "message"] {
                if at(pod, "status").and_then(|status| status.get(field)).is_some() {
                    put(field, Value::Null);
                }
            }
        }
    }
    out
}

/// Whether a phase is never left.
fn is_final(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// The phase that the pod shows.
fn shown_phase(pod: &Value) -> &str {
    at(pod, "status.phase")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether the pod shares its node's network.
pub(crate) fn is_host_network(pod: &Value) -> bool {
    at(pod, "spec.hostNetwork").and_then(Value::as_bool) == Some(true)
}
