use std::sync::Arc;

use rstest::rstest;
use shared_json::json;

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

fn labels(revision: &str) -> Value {
    json!({"apps.kruise.io/subset-name": "x", "apps.kruise.io/controller-revision-hash": revision})
}

/// The CloneSet of a subset with so many replicas.
fn workload(at_ms: i64, name: &str, replicas: i64) -> Change {
    let object = json!({"metadata": {"name": name, "labels": labels("new")}, "spec": {"replicas": replicas}});
    change(at_ms, "clonesets", Added, object)
}

/// A pod of the CloneSet `a-x-1`.
fn pod(at_ms: i64, kind: ChangeKind, name: &str, revision: &str, ends: bool, restarts: i64) -> Change {
    let object = json!({
        "metadata": {"name": name, "uid": name, "labels": labels(revision), "ownerReferences": [{"name": "a-x-1"}],
            "deletionTimestamp": ends.then_some("now")},
        "spec": {"containers": [{"image": "x"}]},
        "status": {"containerStatuses": [{"restartCount": restarts}]},
    });
    change(at_ms, "pods", kind, object)
}

/// A subset of two pods, whose CloneSet is to have so many.
fn begun(replicas: i64) -> Vec<Change> {
    vec![
        workload(0, "a-x-1", replicas),
        pod(1, Added, "p1", "new", false, 0),
        pod(1, Added, "p2", "old", false, 0),
    ]
}

#[rstest]
#[case::fine(2, vec![], None)]
#[case::one_too_many(1, vec![pod(9, Modified, "p1", "new", true, 0)], None)]
#[case::taken_away(2, vec![pod(9, Modified, "p1", "new", true, 0)], Some("leaves 1 of 2"))]
#[case::an_old_one(2, vec![pod(9, Modified, "p2", "old", true, 0)], None)]
#[case::once(2, vec![pod(9, Modified, "p1", "new", true, 0), pod(10, Modified, "p1", "new", true, 0)], Some("leaves 1 of 2"))]
#[case::restarted(2, vec![pod(9, Modified, "p1", "new", false, 1)], Some("1 restarts for 0 changes"))]
#[case::a_second_workload(2, vec![workload(9, "a-x-2", 2)], Some("subset x has a-x-1, too"))]
fn a_fault_is_seen(#[case] replicas: i64, #[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(replicas), more].concat();
    let found = wrongs(&history, &Deeds::default());
    assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
    assert!(
        found.iter().all(|fault| fault.contains(expected.unwrap_or("?"))),
        "{found:?}"
    );
}

#[test]
fn what_was_done_by_hand_is_no_fault() {
    let history = [begun(2), vec![pod(9000, Modified, "p1", "new", true, 0)]].concat();
    let mut deeds = Deeds::default();
    deeds.deleted.insert("p1".to_owned());
    assert_eq!(wrongs(&history, &deeds), Vec::<String>::new());
}

/// The numbers of the subsets by the status, the subsets of the pods, and how much is wrong when there are to be three pods.
#[rstest]
#[case::fine(json!({"x": 1, "y": 2}), "xyy", 0)]
#[case::not_all(json!({"x": 1, "y": 1}), "xy", 2)]
#[case::elsewhere(json!({"x": 1, "y": 2}), "xxy", 2)]
#[case::one_that_is_gone(json!({"x": 1, "y": 1, "z": 1}), "xyz", 1)]
fn the_end(#[case] planned: Value, #[case] pods: &str, #[case] wrong: usize) {
    let set = json!({"status": {
        "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "updatedReadyReplicas": 3, "currentRevision": "new",
        "updateStatus": {"updatedRevision": "new"}, "subsetReplicas": planned,
    }});
    let pods: Vec<Value> = pods
        .chars()
        .map(|subset| {
            let mut labels = labels("new");
            labels["apps.kruise.io/subset-name"] = json!(subset.to_string());
            json!({"metadata": {"labels": labels}})
        })
        .collect();
    let found = unlike(&set, &pods, 3, &["x", "y"]);
    assert_eq!(found.len(), wrong, "{found:?}");
}
