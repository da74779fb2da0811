//! Rows: the speed of nodes by the changes of pods.

use std::sync::Arc;

use shared_json::json;

use super::*;

fn pod(at_ms: i64, kind: ChangeKind, node: &str, state: &str, ends: bool) -> Change {
    Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: Arc::new(json!({
            "metadata": {"name": "p", "deletionTimestamp": ends.then_some("now")},
            "spec": {"nodeName": node, "containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{"state": {state: {}}}]},
        })),
    }
}

/// The timing of the only pod of the history.
fn only(history: &[Change]) -> Option<Timing> {
    let lives = of(history).remove("p").unwrap();
    assert!(lives.len() <= 1);
    lives.into_iter().next().flatten()
}

/// A container ran for a second from 1000 on, and the pod was over at 3500.
#[test]
fn pods_that_end_by_themselves() {
    let mut ended = pod(3000, ChangeKind::Modified, "n", "terminated", false);
    let state = json!({"startedAt": "2026-01-01T00:00:07Z", "finishedAt": "2026-01-01T00:00:08Z"});
    Arc::make_mut(&mut ended.object)["status"]["containerStatuses"][0]["state"]["terminated"] = state;
    Arc::make_mut(&mut ended.object)["metadata"]["deletionTimestamp"] = Value::Null;
    let mut over = ended.clone();
    over.at_ms = 3500;
    Arc::make_mut(&mut over.object)["status"]["phase"] = json!("Succeeded");
    let mut running = pod(1000, ChangeKind::Modified, "n", "running", false);
    Arc::make_mut(&mut running.object)["metadata"]["deletionTimestamp"] = Value::Null;
    let found = only(&[running, ended, over]).unwrap();
    assert_eq!(found.wind_down, Duration::from_millis(1500));
}

#[test]
fn pods_of_one_name_have_each_their_own_speed() {
    let with = |at_ms, kind, uid: &str, node: &str, state: &str| {
        let mut change = pod(at_ms, kind, node, state, false);
        Arc::make_mut(&mut change.object)["metadata"]["uid"] = json!(uid);
        change
    };
    use ChangeKind::{Added, Deleted, Modified};
    let history = [
        with(0, Added, "a", "n", "waiting"),
        with(1000, Modified, "a", "n", "running"),
        with(2000, Deleted, "a", "n", "running"),
        with(2500, Added, "b", "n", "waiting"),
        with(5500, Modified, "b", "n", "running"),
    ];
    let lives = of(&history).remove("p").unwrap();
    let sandboxes: Vec<_> = lives
        .into_iter()
        .map(|life| life.unwrap().sandbox.as_millis())
        .collect();
    let rest = 30 + 110 + 40;
    assert_eq!(sandboxes, [1000 - rest, 3000 - rest]);
}

#[test]
fn a_slow_node() {
    use ChangeKind::{Added, Deleted, Modified};
    let history = [
        pod(0, Added, "", "waiting", false),
        pod(100, Modified, "n", "waiting", false),
        pod(2100, Modified, "n", "running", false),
        pod(9000, Modified, "n", "running", true),
        pod(9500, Modified, "n", "terminated", true),
        pod(10_500, Deleted, "n", "terminated", true),
    ];
    let timing = only(&history).unwrap();
    assert_eq!(timing.sandbox, Duration::from_millis(2100 - 30 - 110 - 40));
    assert_eq!(timing.remove, Duration::from_millis(1350));
    assert!(!timing.varies);
    assert_eq!(only(&history[..1]), None, "nothing is known of it");
}
#[test]
fn a_container_that_is_redefined_takes_its_time() {
    let with = |at_ms, image: &str, restarts: i64| Change {
        at_ms,
        resource: "pods".to_owned(),
        kind: ChangeKind::Modified,
        object: Arc::new(json!({
            "metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"image": image}]},
            "status": {"containerStatuses": [{"restartCount": restarts}]},
        })),
    };
    // The third restart has another reason.
    let history = [
        with(0, "a", 0),
        with(1000, "b", 0),
        with(1500, "b", 1),
        with(2000, "c", 1),
        with(4100, "c", 2),
        with(9000, "c", 3),
    ];
    let timing = only(&history).unwrap();
    let expected = [500, 2100].map(|ms| Some(Duration::from_millis(ms)));
    assert_eq!(timing.redefinitions, expected);
}

#[test]
fn a_pod_becomes_ready_a_while_after_its_gates_have_opened() {
    let with = |at_ms, gate: &str, ready: &str| Change {
        at_ms,
        resource: "pods".to_owned(),
        kind: ChangeKind::Modified,
        object: Arc::new(json!({
            "metadata": {"name": "p"}, "spec": {"nodeName": "n", "readinessGates": [{"conditionType": "G"}]},
            "status": {"conditions": [{"type": "G", "status": gate}, {"type": "Ready", "status": ready}]},
        })),
    };
    // The first time the gate only opens; the second it closes again; the last the pod takes longer than any node.
    let history = [
        with(0, "False", "False"),
        with(1000, "True", "False"),
        with(1640, "True", "True"),
        with(2000, "False", "False"),
        with(2100, "True", "False"),
        with(2200, "False", "False"),
        with(3000, "True", "False"),
        with(9000, "True", "True"),
    ];
    let timing = only(&history).unwrap();
    assert_eq!(timing.reopenings, [Some(Duration::from_millis(640)), None, None]);
}

/// A pod whose only container is in a state, after so many restarts.
fn run(at_ms: i64, restarts: i64, state: &str, ready: &str) -> Change {
    Change {
        at_ms,
        resource: "pods".to_owned(),
        kind: ChangeKind::Modified,
        object: Arc::new(json!({
            "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:10Z"},
            "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
            "status": {
                "phase": "Running",
                "containerStatuses": [{"restartCount": restarts, "state": {state: {}}}],
                "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:12Z"}],
            },
        })),
    }
}

#[test]
fn a_container_runs_and_waits_as_long_as_it_did() {
    let history = [
        run(0, 0, "running", "False"),
        run(2000, 0, "terminated", "False"),
        run(2200, 1, "running", "False"),
        run(5200, 1, "terminated", "False"),
        run(17_000, 2, "running", "False"),
    ];
    let ms = |ms| Some(Duration::from_millis(ms));
    let expected = [(ms(2000), ms(200)), (ms(3000), ms(11_800)), (None, None)];
    let expected = expected.map(|(lasted, waited)| RunTiming { lasted, waited });
    assert_eq!(only(&history).unwrap().runs, expected);
}

#[test]
fn readiness_names_its_own_time() {
    let history = [run(0, 0, "running", "False"), run(9000, 0, "running", "True")];
    assert_eq!(only(&history).unwrap().ready_after, Some(Duration::from_secs(2)));
    assert_eq!(only(&history[..1]).unwrap().ready_after, None);
}
