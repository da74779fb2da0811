use std::sync::Arc;

use rstest::rstest;

use super::*;
use ChangeKind::{Added, Modified};

fn change(at_ms: i64, resource: &str, kind: ChangeKind, object: Value) -> Change {
    Change {
        at_ms,
        resource: resource.to_owned(),
        kind,
        object: Arc::new(object),
    }
}

/// A pod whose sidecar has an image and runs another, and how often each container has restarted.
fn pod(at_ms: i64, kind: ChangeKind, name: &str, image: &str, runs: &str, restarts: [i64; 2]) -> Change {
    let status = |name: &str, image: &str, restarts: i64| json!({"name": name, "image": image, "restartCount": restarts, "state": {"running": {}}});
    let object = json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "side", "image": image}, {"name": MAIN, "image": "app:v1"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [status("side", runs, restarts[0]), status(MAIN, "app:v1", restarts[1])],
        },
    });
    change(at_ms, "pods", kind, object)
}

/// A set that wants `side:v2`, and four pods with `side:v1`.
fn begun(strategy: Value) -> Vec<Change> {
    let set =
        json!({"spec": {"containers": [{"name": "side", "image": "side:v2"}], "updateStrategy": strategy}});
    let mut out = vec![change(0, RESOURCE, Added, set)];
    for name in ["a", "b", "c", "d"] {
        out.push(pod(1, Added, name, "side:v1", "side:v1", [0, 0]));
    }
    out
}

fn upgrade(at_ms: i64, name: &str) -> Change {
    pod(at_ms, Modified, name, "side:v2", "side:v1", [0, 0])
}

fn upgraded(at_ms: i64, name: &str) -> Change {
    pod(
        at_ms,
        Modified,
        name,
        "side:v2",
        "docker.io/library/side:v2",
        [1, 0],
    )
}

#[rstest]
#[case::one_of_one(json!({}), vec![upgrade(9, "a")], None)]
#[case::one_after_the_other(json!({}), vec![upgrade(9, "a"), upgraded(10, "a"), upgrade(11, "b")], None)]
#[case::two_of_one(json!({}), vec![upgrade(9, "a"), upgrade(11, "b")], Some("while 1 of 4 are being updated, 1 may be"))]
#[case::a_share(json!({"maxUnavailable": "30%"}), vec![upgrade(9, "a"), upgrade(11, "b")], None)]
#[case::the_partition(
    json!({"partition": 3}), vec![upgrade(9, "a"), upgraded(10, "a"), upgrade(11, "b")],
    Some("one of 3 old ones of 4, 3 are to stay")
)]
#[case::a_share_leaves_one(json!({"partition": "99%"}), vec![upgrade(9, "a")], None)]
#[case::paused(json!({"paused": true}), vec![upgrade(9, "a")], Some("while the set is paused"))]
#[case::another_container(
    json!({}), vec![pod(9, Modified, "a", "side:v1", "side:v1", [0, 1])], Some("main restarted 1 times for 0 changes")
)]
#[case::once_too_often(
    json!({}), vec![upgrade(9, "a"), pod(10, Modified, "a", "side:v2", "side:v2", [2, 0])],
    Some("side restarted 2 times for 1 changes")
)]
fn a_fault_is_seen(#[case] strategy: Value, #[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(strategy), more].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}
