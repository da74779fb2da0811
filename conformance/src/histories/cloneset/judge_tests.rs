use std::sync::Arc;

use rstest::rstest;

use super::*;
use ChangeKind::{Added, Modified};

/// A pod of a name: its revision, whether it is ready, and how often it restarted.
fn pod(at_ms: i64, kind: ChangeKind, name: &str, revision: &str, ready: &str, restarts: i64) -> Change {
    Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: Arc::new(json!({
            "metadata": {"name": name, "labels": {"controller-revision-hash": revision}},
            "spec": {"containers": [{"image": "x"}]},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"restartCount": restarts}],
            },
        })),
    }
}

/// A set of one pod that may not be missing.
fn set(partition: i64, min_ready: i64) -> Change {
    Change {
        at_ms: 0,
        resource: "clonesets".to_owned(),
        kind: Added,
        object: Arc::new(json!({
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 1, "minReadySeconds": min_ready,
                "updateStrategy": {"partition": partition, "maxUnavailable": 0, "maxSurge": 0},
            },
            "status": {"updateRevision": "new", "currentRevision": "old"},
        })),
    }
}

#[rstest]
#[case::fine(vec![set(0, 0), pod(1, Added, "p", "old", "True", 0)], None)]
#[case::one_too_many(
    vec![set(0, 0), pod(1, Added, "p", "old", "True", 0), pod(2, Added, "q", "old", "True", 0)],
    Some("number 2 of 1")
)]
#[case::one_too_few(
    vec![set(0, 0), pod(1, Added, "p", "old", "True", 0), pod(2, Modified, "p", "old", "False", 0)],
    Some("leaves 0 of 1")
)]
#[case::not_available_yet(
    vec![set(0, 9), pod(1, Added, "p", "old", "True", 0), pod(2, Modified, "p", "old", "False", 0)],
    None
)]
#[case::available_for_long(
    vec![set(0, 9), pod(1, Added, "p", "old", "True", 0), pod(9500, Modified, "p", "old", "False", 0)],
    Some("leaves 0 of 1")
)]
#[case::updated_in_place(
    vec![set(1, 0), pod(1, Added, "p", "old", "True", 0), pod(2, Modified, "p", "new", "True", 0)],
    Some("1 to stay")
)]
#[case::created_new(vec![set(1, 0), pod(1, Added, "p", "new", "False", 0)], Some("1 to stay"))]
#[case::restarted(
    vec![set(0, 0), pod(1, Added, "p", "old", "True", 0), pod(2, Modified, "p", "old", "True", 1)],
    Some("1 restarts for 0")
)]
fn a_fault_is_seen(#[case] history: Vec<Change>, #[case] expected: Option<&str>) {
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

/// While a watch of the controller is broken off, it cannot know.
#[rstest]
#[case(2, false)]
#[case(4001, false)]
#[case(4002, true)]
fn who_sees_nothing_keeps_to_nothing(#[case] at_ms: i64, #[case] expected: bool) {
    let one_too_many = vec![
        set(0, 0),
        pod(0, Added, "p", "old", "True", 0),
        pod(at_ms, Added, "q", "old", "True", 0),
    ];
    let deeds = Deeds {
        blinded_at_ms: vec![1],
        ..Deeds::default()
    };
    assert_eq!(!wrongs(&one_too_many, &deeds).is_empty(), expected);
}

/// A pod that was named to go and stayed is seen; another one with its name is another one.
#[rstest]
#[case::it_stays(vec![set(0, 0), pod(1, Added, "p", "old", "True", 0)], true)]
#[case::its_successor(
    vec![
        set(0, 0), pod(1, Added, "p", "old", "True", 0), pod(9, ChangeKind::Deleted, "p", "old", "True", 0),
        pod(9, Added, "p", "old", "True", 0),
    ],
    false
)]
fn a_named_pod_goes(#[case] history: Vec<Change>, #[case] expected: bool) {
    let deeds = Deeds {
        named: vec![(5, "p".to_owned())],
        ..Deeds::default()
    };
    let found = wrongs(&history, &deeds);
    assert_eq!(
        found.iter().any(|wrong| wrong.contains("was to be deleted")),
        expected,
        "{found:?}"
    );
}

/// A pod that goes before one that was named is seen.
#[test]
fn an_overtaken_pod_is_seen() {
    let pod = |at_ms: i64, kind: ChangeKind, name: &str, labels: Value, ends: bool| Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: Arc::new(json!({"metadata": {
            "name": name, "labels": labels, "deletionTimestamp": ends.then_some("now"),
        }})),
    };
    let begin = |labels: Value| {
        vec![
            pod(1, Added, "p", json!({}), false),
            pod(2, Added, "q", json!({}), false),
            pod(200, Modified, "q", labels, true),
        ]
    };
    let deeds = Deeds {
        named: vec![(100, "p".to_owned())],
        ..Deeds::default()
    };
    assert!(overtaken(&begin(json!({})), &deeds, 100, "p").is_some());
    let marked = begin(json!({"apps.kruise.io/specified-delete": "true"}));
    assert_eq!(overtaken(&marked, &deeds, 100, "p"), None);
    let blinded = Deeds {
        blinded_at_ms: vec![50],
        ..deeds
    };
    assert_eq!(overtaken(&begin(json!({})), &blinded, 100, "p"), None);
}
