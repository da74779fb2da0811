use std::sync::Arc;

use rstest::rstest;
use shared_json::json;

use super::*;
use ChangeKind::{Added, Deleted, Modified};

fn change(at_ms: i64, resource: &str, kind: ChangeKind, object: Value) -> Change {
    Change {
        at_ms,
        resource: resource.to_owned(),
        kind,
        object: Arc::new(object),
    }
}

/// The job, which lives for five seconds after its end.
fn job(at_ms: i64, kind: ChangeKind, parallelism: i64, ended: bool) -> Change {
    let conditions = match ended {
        true => json!([{"type": "Complete"}]),
        false => json!([]),
    };
    let object = json!({
        "metadata": {"name": "a", "uid": "j"},
        "spec": {"parallelism": parallelism, "completionPolicy": {"ttlSecondsAfterFinished": 5}},
        "status": {"conditions": conditions},
    });
    change(at_ms, RESOURCE, kind, object)
}

/// A pod for a node.
fn pod(at_ms: i64, kind: ChangeKind, name: &str, node: &str, phase: &str) -> Change {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    let object = json!({
        "metadata": {"name": name, "labels": {"broadcastjob-controller-uid": "j"}},
        "spec": {"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}},
        "status": {"phase": phase},
    });
    change(at_ms, "pods", kind, object)
}

fn begun() -> Vec<Change> {
    vec![job(0, Added, 1, false), pod(1, Added, "p", "n", "Running")]
}

#[rstest]
#[case::fine(vec![], None)]
#[case::one_after_the_other(
    vec![pod(2, Modified, "p", "n", "Succeeded"), pod(3, Added, "q", "m", "Pending")], None)]
#[case::beside(vec![pod(3, Added, "q", "m", "Pending")], Some("active pod 2 of 1"))]
#[case::beside_after_a_change(
    vec![job(2, Modified, 2, false), job(3, Modified, 1, false), pod(9, Added, "q", "m", "Pending")], None)]
#[case::beside_long_after_a_change(
    vec![job(2, Modified, 2, false), job(3, Modified, 1, false), pod(9000, Added, "q", "m", "Pending")],
    Some("active pod 2 of 1"))]
#[case::on_the_same_node(
    vec![pod(2, Modified, "p", "n", "Succeeded"), pod(3, Added, "q", "n", "Pending")], Some("for n, which has p"))]
#[case::again(vec![pod(2, Deleted, "p", "n", "Running"), pod(3, Added, "q", "n", "Pending")], None)]
#[case::after_the_end(
    vec![pod(2, Modified, "p", "n", "Succeeded"), job(3, Modified, 1, true), pod(9, Added, "q", "m", "Pending")],
    Some("6 ms after the end"))]
#[case::deleted_in_time(vec![job(3, Modified, 1, true), job(4100, Deleted, 1, true)], None)]
#[case::deleted_early(vec![job(3, Modified, 1, true), job(3000, Deleted, 1, true)], Some("2997 ms after its end"))]
#[case::deleted_late(vec![job(3, Modified, 1, true), job(90_000, Deleted, 1, true)], Some("only 89997 ms after"))]
#[case::deleted_before_its_end(vec![job(3, Deleted, 1, false)], Some("without an end"))]
#[case::never_deleted(
    vec![job(3, Modified, 1, true), pod(90_000, Deleted, "p", "n", "Succeeded")], Some("its time to live is over"))]
fn a_fault_is_seen(#[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(), more].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

/// The phase of a job that never ends, the numbers of its status, the nodes of its pods, which have succeeded, and how much is wrong
/// on two nodes.
#[rstest]
#[case::fine("running", 2, 2, &["n", "m"], 0)]
#[case::not_everywhere("running", 2, 1, &["n"], 1)]
#[case::counted_wrong("running", 1, 1, &["n", "m"], 2)]
#[case::over("completed", 0, 0, &[], 0)]
fn the_end(
    #[case] phase: &str,
    #[case] desired: i64,
    #[case] succeeded: i64,
    #[case] nodes: &[&str],
    #[case] wrong: usize,
) {
    let job = json!({
        "metadata": {"uid": "j"}, "spec": {"completionPolicy": {"type": "Never"}},
        "status": {"phase": phase, "desired": desired, "succeeded": succeeded},
    });
    let pods: Vec<Value> = nodes
        .iter()
        .map(|node| Value::clone(&pod(0, Added, "p", node, "Succeeded").object))
        .collect();
    let found = unlike(&job, &pods, 2);
    assert_eq!(found.len(), wrong, "{found:?}");
}
