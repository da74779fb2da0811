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

/// The budget, of which one pod may be missing, with the pods that it has recorded.
fn budget(at_ms: i64, recorded: &[&str], operations: &str) -> Change {
    let recorded: shared_json::Map = recorded
        .iter()
        .map(|name| ((*name).to_owned(), json!("1970-01-01T00:00:00Z")))
        .collect();
    let object = json!({
        "metadata": {"name": "a", "annotations": {"kruise.io/pub-protect-operations": operations}},
        "spec": {"maxUnavailable": 1},
        "status": {"desiredAvailable": 2, "disruptedPods": recorded},
    });
    change(at_ms, RESOURCE, Modified, object)
}

/// A pod: whether it is ready, its image, and its phase.
fn pod(at_ms: i64, kind: ChangeKind, name: &str, ready: bool, image: &str, phase: &str) -> Change {
    let ready = if ready { "True" } else { "False" };
    let object = json!({
        "metadata": {"name": name, "uid": name, "annotations": {"kruise.io/related-pub": "a"}},
        "spec": {"containers": [{"image": image}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    });
    change(at_ms, "pods", kind, object)
}

fn going(at_ms: i64, name: &str) -> Change {
    let mut object = Value::clone(&pod(0, Modified, name, true, "v1", "Running").object);
    object["metadata"]["deletionTimestamp"] = json!("now");
    change(at_ms, "pods", Modified, object)
}

fn ready(at_ms: i64, name: &str) -> Change {
    pod(at_ms, Added, name, true, "v1", "Running")
}

fn changed(at_ms: i64, name: &str) -> Change {
    pod(at_ms, Modified, name, true, "v2", "Running")
}

fn unready(at_ms: i64, name: &str) -> Change {
    pod(at_ms, Modified, name, false, "v1", "Running")
}

/// A budget for three pods of a CloneSet, all in service.
fn begun(operations: &str) -> Vec<Change> {
    let set = json!({"metadata": {"name": "w"}, "spec": {"replicas": 3}});
    let mut out = vec![budget(0, &[], operations), change(0, "clonesets", Added, set)];
    out.extend(["p", "q", "r"].map(|name| ready(1, name)));
    out
}

#[rstest]
#[case::fine("", vec![budget(5000, &["p"], ""), going(5001, "p")], None)]
#[case::not_recorded("", vec![going(5000, "p")], Some("Removal of a pod in service"))]
#[case::gone_at_once("", vec![pod(5000, Deleted, "p", true, "v1", "Running")], Some("Removal of a pod in service"))]
#[case::not_guarded("UPDATE", vec![going(5000, "p")], None)]
#[case::an_update("", vec![changed(5000, "p")], Some("Update of a pod in service"))]
#[case::an_update_that_is_not_guarded("DELETE,EVICT", vec![changed(5000, "p")], None)]
#[case::two_at_once("", vec![budget(5000, &["p", "q"], "")], Some("leaves 1 pods in service, 2 must be"))]
#[case::one_more(
    "", vec![budget(5000, &["p"], ""), going(5001, "p"), budget(5002, &["p", "q"], "")],
    Some("recorded q, which leaves 1"))]
#[case::one_more_in_time(
    "", vec![budget(5000, &["p"], ""), going(5001, "p"), ready(6000, "s"), budget(6001, &["q"], "")], None)]
#[case::dropped_too_soon(
    "", vec![budget(5000, &["p"], ""), going(5001, "p"), budget(6000, &[], ""), budget(6001, &["q"], "")],
    Some("recorded q, which leaves 1"))]
#[case::just_after_a_loss("", vec![unready(5000, "p"), budget(6000, &["q"], "")], None)]
#[case::long_after_a_loss("", vec![unready(5000, "p"), budget(9500, &["q"], "")], Some("leaves 1"))]
#[case::of_one_that_is_not_ready("", vec![unready(5000, "p"), going(5001, "p")], None)]
fn a_fault_is_seen(#[case] operations: &str, #[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(operations), more].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

#[test]
fn a_pod_that_fails_by_hand_asks_nobody() {
    let history = [begun(""), vec![pod(5000, Modified, "p", true, "v1", "Failed")]].concat();
    assert_eq!(wrongs(&history, &Deeds::default()).len(), 1);
    let mut deeds = Deeds::default();
    deeds.deleted.insert("p".to_owned());
    assert_eq!(wrongs(&history, &deeds), Vec::<String>::new());
}

/// How many pods are counted in service and how many may go, and how much is wrong when two of three are in service.
#[rstest]
#[case::fine(2, 0, 0)]
#[case::counted_wrong(3, 0, 1)]
#[case::too_many_may_go(2, 1, 1)]
fn the_end(#[case] current: i64, #[case] allowed: i64, #[case] wrong: usize) {
    let budget = json!({
        "metadata": {"name": "a"}, "spec": {"maxUnavailable": "33%"},
        "status": {"totalReplicas": 3, "desiredAvailable": 2, "currentAvailable": current, "unavailableAllowed": allowed},
    });
    let pods = [ready(0, "p"), ready(0, "q"), unready(0, "r")];
    let pods: Vec<Value> = pods.iter().map(|pod| Value::clone(&pod.object)).collect();
    let found = unlike(&budget, &pods, 3);
    assert_eq!(found.len(), wrong, "{found:?}");
}
