use std::sync::Arc;

use rstest::rstest;

use super::*;
use ChangeKind::{Added, Modified};

/// A pod of an ordinal: its revision, whether it is ready, and how often it restarted.
fn pod(at_ms: i64, kind: ChangeKind, ordinal: i64, revision: &str, ready: &str, restarts: i64) -> Change {
    Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: Arc::new(json!({
            "metadata": {"name": format!("a-{ordinal}"), "labels": {"controller-revision-hash": revision}},
            "spec": {"containers": [{"image": "x"}]},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"restartCount": restarts}],
            },
        })),
    }
}

/// A set of two pods.
fn set(policy: &str, partition: i64, unordered: bool) -> Change {
    Change {
        at_ms: 0,
        resource: RESOURCE.to_owned(),
        kind: Added,
        object: Arc::new(json!({
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 2, "podManagementPolicy": policy,
                "updateStrategy": {"rollingUpdate": {
                    "partition": partition, "maxUnavailable": 1,
                    "unorderedUpdate": unordered.then(|| json!({})),
                }},
            },
            "status": {"updateRevision": "new", "currentRevision": "old"},
        })),
    }
}

fn two(revisions: [&str; 2]) -> [Change; 2] {
    [0, 1].map(|at| pod(1, Added, at, revisions[usize::try_from(at).unwrap()], "True", 0))
}

#[rstest]
#[case::fine("Parallel", 0, false, two(["old", "old"]).to_vec(), None)]
#[case::an_ordinal_too_high("Parallel", 0, false, vec![pod(1, Added, 2, "old", "True", 0)], Some("the ordinals are [0, 1]"))]
#[case::too_early("OrderedReady", 0, false, vec![pod(1, Added, 1, "old", "True", 0)], Some("before 0 is available"))]
#[case::not_too_early("Parallel", 0, false, vec![pod(1, Added, 1, "old", "True", 0)], None)]
#[case::one_taken_away(
    "Parallel", 0, false,
    [two(["old", "old"]).to_vec(), vec![pod(2, Modified, 1, "old", "False", 0)]].concat(),
    None
)]
#[case::two_taken_away(
    "Parallel", 0, false,
    [two(["old", "old"]).to_vec(), vec![pod(2, Modified, 1, "old", "False", 0), pod(3, Modified, 0, "old", "False", 0)]].concat(),
    Some("leaves 0 of 2")
)]
#[case::below_the_partition("Parallel", 1, false, two(["new", "old"]).to_vec(), Some("updated in place 0"))]
#[case::above_the_partition("Parallel", 1, false, two(["old", "new"]).to_vec(), None)]
#[case::any_that_is_not_one_too_many("Parallel", 1, true, two(["new", "old"]).to_vec(), None)]
#[case::one_too_many("Parallel", 1, true, two(["new", "new"]).to_vec(), Some("number 2 of 2"))]
#[case::restarted(
    "Parallel", 0, false,
    [two(["old", "old"]).to_vec(), vec![pod(2, Modified, 1, "old", "True", 1)]].concat(),
    Some("1 restarts for 0")
)]
fn a_fault_is_seen(
    #[case] policy: &str,
    #[case] partition: i64,
    #[case] unordered: bool,
    #[case] history: Vec<Change>,
    #[case] expected: Option<&str>,
) {
    let history = [vec![set(policy, partition, unordered)], history].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}
