use std::sync::Arc;

use rstest::rstest;

use super::*;
use ChangeKind::{Added, Modified};

/// A pod on a node: its revision, whether it is ready, and whether it ends.
fn pod(
    at_ms: i64,
    kind: ChangeKind,
    name: &str,
    node: &str,
    revision: &str,
    ready: &str,
    ends: bool,
) -> Change {
    Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: Arc::new(json!({
            "metadata": {"name": name, "labels": {"controller-revision-hash": revision},
                "deletionTimestamp": ends.then_some("now")},
            "spec": {"nodeName": node, "containers": [{"image": "x"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })),
    }
}

fn object(resource: &str, object: Value) -> Change {
    Change {
        at_ms: 0,
        resource: resource.to_owned(),
        kind: Added,
        object: Arc::new(object),
    }
}

/// A set with these details, its newest revision `new`, and an old pod on each of three nodes.
fn begun(rolling: Value) -> Vec<Change> {
    let mut out = vec![
        object(
            RESOURCE,
            json!({"spec": {"updateStrategy": {"rollingUpdate": rolling}}}),
        ),
        object(
            "controllerrevisions",
            json!({"metadata": {"name": "a-new"}, "revision": 2}),
        ),
    ];
    for node in ["1", "2", "3"] {
        out.push(pod(1, Added, &format!("a-{node}"), node, "old", "True", false));
    }
    out
}

#[rstest]
#[case::fine(json!({}), vec![], None)]
#[case::one_of_one(json!({}), vec![pod(9, Modified, "a-3", "3", "old", "True", true)], None)]
#[case::two_of_one(
    json!({}),
    vec![pod(9, Modified, "a-3", "3", "old", "True", true), pod(9, Modified, "a-2", "2", "old", "True", true)],
    Some("number 2 of 3, 1 may be missing")
)]
#[case::the_partition(
    json!({"partition": 3}), vec![pod(9, Modified, "a-3", "3", "old", "True", true)],
    Some("leaves 2 old ones, 3 are to stay")
)]
#[case::in_place(
    json!({"partition": 3}), vec![pod(9, Modified, "a-3", "3", "new", "True", false)],
    Some("leaves 2 old ones, 3 are to stay")
)]
#[case::a_second_one(json!({}), vec![pod(9, Added, "a-4", "3", "new", "False", false)], Some("number 2 on 3"))]
#[case::a_second_one_that_surges(json!({"maxSurge": 1}), vec![pod(9, Added, "a-4", "3", "new", "False", false)], None)]
fn a_fault_is_seen(#[case] rolling: Value, #[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(rolling), more].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}
