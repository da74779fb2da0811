use std::sync::Arc;

use rstest::rstest;
use shared_json::json;

use super::*;

fn change(resource: &str, kind: ChangeKind, object: Value) -> Change {
    Change {
        at_ms: 0,
        resource: resource.to_owned(),
        kind,
        object: Arc::new(object),
    }
}

/// The pod `p` whose container `main` has restarted so often.
fn pod(restarts: i64) -> Change {
    let object = json!({
        "metadata": {"name": "p", "uid": "u"},
        "status": {"containerStatuses": [{"name": "main", "restartCount": restarts}]},
    });
    change("pods", ChangeKind::Modified, object)
}

/// A request for the pod's container. One that is carried out may have stopped the container.
fn request(name: &str, phase: &str) -> Change {
    let completed = (phase == "Completed").then_some("1970-01-01T00:00:00Z");
    let states = match phase {
        "Recreating" => json!([{"name": "main", "phase": "Pending"}]),
        _ => json!([]),
    };
    let object = json!({
        "metadata": {"name": name, "labels": {"crr.apps.kruise.io/pod-uid": "u"}},
        "status": {"phase": phase, "completionTime": completed, "containerRecreateStates": states},
    });
    change(RESOURCE, ChangeKind::Modified, object)
}

fn gone(name: &str) -> Change {
    change(RESOURCE, ChangeKind::Deleted, json!({"metadata": {"name": name}}))
}

#[rstest]
#[case::for_a_request(vec![request("a", "Recreating"), pod(1), request("a", "Completed")], None)]
#[case::without_a_request(vec![pod(1)], Some("main restarted 1 times for 0 requests"))]
#[case::while_it_waits(
    vec![request("a", "Pending"), pod(1), request("a", "Completed")], Some("main restarted 1 times for 0 requests"))]
#[case::twice(
    vec![request("a", "Recreating"), pod(2), request("a", "Completed")], Some("main restarted 2 times for 1 requests"))]
#[case::two_requests(
    vec![request("a", "Recreating"), request("a", "Completed"), request("b", "Recreating"), pod(2), request("b", "Completed")],
    None)]
#[case::together(vec![request("a", "Recreating"), request("b", "Recreating")], Some("b: is carried out together with a"))]
#[case::never_ends(vec![request("a", "Pending")], Some("at the end a is \"Pending\""))]
#[case::taken_away(vec![request("a", "Pending"), gone("a")], None)]
fn a_fault_is_seen(#[case] history: Vec<Change>, #[case] expected: Option<&str>) {
    let found = wrongs(&history);
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

#[rstest]
#[case::all_ready(&["True", "True"], 2, true)]
#[case::one_out_of_service(&["True", "False"], 2, false)]
#[case::one_too_many(&["True", "True", "False"], 2, true)]
fn pods_at_the_end(#[case] ready: &[&str], #[case] desired: i64, #[case] well: bool) {
    let pod = |status: &&str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    let pods: Vec<Value> = ready.iter().map(pod).collect();
    assert_eq!(unlike(&pods, desired).is_empty(), well);
}
