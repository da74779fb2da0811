//! Reading pods for the controllers of workloads. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use crate::runtime::{condition, is_active, is_ready, list, number, text, time, until};

/// Whether the pod has been ready for so many seconds; if not yet, how long until it will have.
pub(crate) fn availability(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> (bool, Option<Duration>) {
    let Some(ready) = condition(pod, "Ready").filter(|condition| text(condition, "status") == "True") else {
        return (false, None);
    };
    if min_ready_seconds == 0 {
        return (true, None);
    }
    let Some(since) = time(ready, "lastTransitionTime") else {
        return (false, None);
    };
    let at = since.saturating_add(Duration::from_secs(min_ready_seconds.unsigned_abs()));
    match at.ok().and_then(|at| until(at, now)) {
        Some(left) => (false, Some(left)),
        None => (true, None),
    }
}

/// A number or a percentage of `total`.
pub(crate) fn scaled(value: Option<&Value>, total: i64, round_up: bool, default: i64) -> i64 {
    match value {
        Some(Value::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let product = total.saturating_mul(percent);
            if round_up {
                product.saturating_add(99) / 100
            } else {
                product / 100
            }
        }
        Some(value) => value.as_i64().unwrap_or(default),
        None => default,
    }
}

/// Sorts pods so that the ones to be deleted first are first: not assigned, not running, not ready, cheap by their
/// annotation, on the fullest nodes, ready for the shortest time, restarted most, newest.
pub(crate) fn sort_for_deletion(pods: &mut [Arc<Value>], related: &[Arc<Value>]) {
    let mut load: BTreeMap<&str, u32> = BTreeMap::new();
    for pod in related.iter().filter(|pod| is_active(pod)) {
        *load.entry(text(pod, "spec.nodeName")).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| {
        let node = text(pod, "spec.nodeName");
        let phase = match text(pod, "status.phase") {
            "Pending" => 0,
            "Unknown" => 1,
            _ => 2,
        };
        let cost: i64 = string_map(pod, "annotations")
            .get("controller.kubernetes.io/pod-deletion-cost")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let ready = condition(pod, "Ready").filter(|_| is_ready(pod));
        (
            (!node.is_empty(), phase, ready.is_some(), cost),
            Reverse(load.get(node).copied()),
            Reverse(ready.and_then(|ready| time(ready, "lastTransitionTime"))),
            Reverse(restarts(pod)),
            Reverse(created(pod)),
            pod.name().to_owned(),
        )
    });
}

/// The highest number of restarts of the pod's containers.
fn restarts(pod: &Value) -> i64 {
    list(pod, "status.containerStatuses")
        .iter()
        .map(|status| number(status, "restartCount", 0))
        .max()
        .unwrap_or_default()
}

fn created(object: &Value) -> Option<Timestamp> {
    time(object, "metadata.creationTimestamp")
}

/// Sorts objects by when they were made, then by name.
pub(crate) fn sort_by_age(objects: &mut [Arc<Value>]) {
    objects.sort_by(|one, other| {
        created(one)
            .cmp(&created(other))
            .then_with(|| one.name().cmp(other.name()))
    });
}

/// The owner reference from a made object to its controller's object.
pub(crate) fn owner_reference(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": owner.name(), "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod from a template: its metadata and spec, and the owner.
pub(crate) fn from_template(template: &Value, owner: Value) -> Value {
    let metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let mut pod = json!({"metadata": {}, "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))});
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = metadata.get(field).filter(|value| !value.is_null()) {
            pod["metadata"][field] = value.clone();
        }
    }
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!("25%"), 10, true, 3)]
    #[case(json!("25%"), 10, false, 2)]
    #[case(json!(4), 10, false, 4)]
    #[case(json!("100%"), 3, false, 3)]
    #[case(json!("0%"), 3, true, 0)]
    fn percentages(#[case] value: Value, #[case] total: i64, #[case] up: bool, #[case] expected: i64) {
        assert_eq!(scaled(Some(&value), total, up, 1), expected);
        assert_eq!(scaled(None, total, up, 1), 1);
    }

    fn pod(name: &str, node: &str, phase: &str, ready: bool, extra: Value) -> Arc<Value> {
        let mut pod = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "conditions": [{
                "type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": "2026-01-01T00:00:10Z",
            }]},
        });
        pod.merge(&extra);
        Arc::new(pod)
    }

    #[rstest]
    #[case(pod("a", "", "Pending", false, json!({})), pod("b", "n", "Pending", false, json!({})))]
    #[case(pod("b", "n", "Pending", false, json!({})), pod("a", "n", "Running", false, json!({})))]
    #[case(pod("b", "n", "Running", false, json!({})), pod("a", "n", "Running", true, json!({})))]
    #[case(
        pod("b", "n", "Running", true, json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}})),
        pod("a", "n", "Running", true, json!({}))
    )]
    #[case(
        pod("b", "n", "Running", true, json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:05Z"}})),
        pod("a", "n", "Running", true, json!({}))
    )]
    #[case(
        pod("b", "n", "Running", true, json!({"status": {"containerStatuses": [{"restartCount": 3}]}})),
        pod("a", "n", "Running", true, json!({}))
    )]
    #[case(pod("a", "n", "Running", true, json!({})), pod("b", "n", "Running", true, json!({})))]
    fn who_goes_first(#[case] first: Arc<Value>, #[case] second: Arc<Value>) {
        let mut pods = vec![Arc::clone(&second), Arc::clone(&first)];
        sort_for_deletion(&mut pods, &[]);
        assert_eq!(pods[0].name(), first.name());
    }

    #[test]
    fn fuller_nodes_lose_pods_first() {
        let on = |name: &str, node: &str| pod(name, node, "Running", true, json!({}));
        let mut pods = vec![on("a", "n1"), on("b", "n2"), on("c", "n2")];
        let related = pods.clone();
        sort_for_deletion(&mut pods, &related);
        assert_eq!(pods[2].name(), "a");
    }

    #[test]
    fn availability_comes_with_time() {
        let pod = pod("a", "n", "Running", true, json!({}));
        let now = |seconds: &str| format!("2026-01-01T00:00:{seconds}Z").parse().expect("a time");
        assert_eq!(availability(&pod, 0, now("10")), (true, None));
        assert_eq!(
            availability(&pod, 30, now("20")),
            (false, Some(Duration::from_secs(20)))
        );
        assert_eq!(availability(&pod, 30, now("40")), (true, None));
    }
}
