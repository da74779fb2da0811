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

/// The spread, whose subset x takes so many, with the pods that it knows to go.
fn spread(at_ms: i64, most: Value, deleting: &[&str]) -> Change {
    let deleting: shared_json::Map = deleting
        .iter()
        .map(|name| ((*name).to_owned(), json!("1970-01-01T00:00:00Z")))
        .collect();
    let object = json!({
        "metadata": {"name": "a"},
        "spec": {"subsets": [{"name": "x", "maxReplicas": most}, {"name": "y"}]},
        "status": {"versionedSubsetStatuses": {"versionIgnored": [{"name": "x", "deletingPods": deleting}]}},
    });
    change(at_ms, RESOURCE, Modified, object)
}

fn pod_object(name: &str, subset: &str, phase: &str) -> Value {
    let matched = json!({"name": "a", "subset": subset}).to_string();
    json!({
        "metadata": {"name": name, "annotations": {"apps.kruise.io/matched-workloadspread": matched}},
        "status": {"phase": phase},
    })
}

fn pod(at_ms: i64, kind: ChangeKind, name: &str, subset: &str, phase: &str) -> Change {
    change(at_ms, "pods", kind, pod_object(name, subset, phase))
}

fn of_version(at_ms: i64, name: &str, hash: &str) -> Change {
    let mut object = pod_object(name, "x", "Pending");
    object["metadata"]["labels"] = json!({"pod-template-hash": hash});
    object["metadata"]["ownerReferences"] = json!([{"kind": "ReplicaSet"}]);
    change(at_ms, "pods", Added, object)
}

fn added(at_ms: i64, name: &str, subset: &str) -> Change {
    pod(at_ms, Added, name, subset, "Pending")
}

/// A spread with one pod in the subset x.
fn begun(most: Value) -> Vec<Change> {
    vec![spread(0, most, &[]), added(1, "p", "x")]
}

#[rstest]
#[case::fine(json!(2), vec![added(9000, "q", "x"), added(9000, "r", "y")], None)]
#[case::beyond(json!(1), vec![added(9000, "q", "x")], Some("pod 2 of subset x, which takes 1"))]
#[case::beyond_a_share(json!("25%"), vec![added(9000, "q", "x")], Some("pod 2 of subset x"))]
#[case::within_a_share(json!("30%"), vec![added(9000, "q", "x")], None)]
#[case::beyond_once_more(json!(1), vec![added(9000, "q", "x"), added(9000, "r", "x")], Some("pod 2"))]
#[case::instead(json!(1), vec![pod(5000, Deleted, "p", "x", "Running"), added(9000, "q", "x")], None)]
#[case::instead_of_one_that_failed(
    json!(1), vec![pod(5000, Modified, "p", "x", "Failed"), added(9000, "q", "x")], None)]
#[case::instead_of_one_that_goes(json!(1), vec![spread(5000, json!(1), &["p"]), added(9000, "q", "x")], None)]
#[case::beside_one_that_was_adopted(
    json!(2), vec![added(5000, "q", ""), pod(6000, Modified, "q", "x", "Running"), added(9000, "r", "x")], None)]
#[case::instead_of_one_that_was_adopted(
    json!(1),
    vec![added(5000, "q", ""), pod(6000, Modified, "q", "x", "Running"), pod(8000, Deleted, "q", "x", "Running"), added(8001, "r", "x")],
    None)]
#[case::instead_of_one_that_replaced_it(
    json!(1),
    vec![added(5000, "q", ""), pod(6000, Modified, "q", "x", "Running"), pod(8000, Deleted, "q", "x", "Running"), added(8001, "r", "x"),
         pod(15_000, Deleted, "r", "x", "Running"), added(15_001, "s", "x")],
    None)]
#[case::long_after_one_that_was_adopted(
    json!(1),
    vec![added(1000, "q", ""), pod(2000, Modified, "q", "x", "Running"), pod(3000, Deleted, "q", "x", "Running"), added(9000, "r", "x")],
    Some("pod 2 of subset x"))]
#[case::made_smaller(
    json!(2), vec![spread(5000, json!(1), &[]), added(6000, "q", "x")], None)]
#[case::made_smaller_long_ago(
    json!(2), vec![spread(5000, json!(1), &[]), added(9500, "q", "x")], Some("which takes 1"))]
#[case::instead_of_one_beyond_a_smaller_maximum(
    json!(2),
    vec![added(2, "q", "x"), spread(5000, json!(1), &[]), pod(10_000, Deleted, "q", "x", "Running"), added(10_001, "r", "x")],
    None)]
#[case::two_instead_of_one_beyond_a_smaller_maximum(
    json!(2),
    vec![added(2, "q", "x"), spread(5000, json!(1), &[]), pod(10_000, Deleted, "q", "x", "Running"), added(10_001, "r", "x"),
         added(10_002, "s", "x")],
    Some("pod 2 of subset x, which takes 1"))]
#[case::of_two_versions(json!(1), vec![of_version(9000, "q", "v1"), of_version(9000, "r", "v2")], None)]
#[case::of_one_version(json!(1), vec![of_version(9000, "q", "v1"), of_version(9000, "r", "v1")], Some("pod 2"))]
fn a_fault_is_seen(#[case] most: Value, #[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(most), more].concat();
    let found = wrongs(&history, &Deeds::default(), 4);
    assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
    assert!(
        found.iter().all(|fault| fault.contains(expected.unwrap_or("?"))),
        "{found:?}"
    );
}

#[test]
fn shares_are_those_of_the_workload_at_that_time() {
    let history = [begun(json!("25%")), vec![added(9000, "q", "x")]].concat();
    let deeds = Deeds {
        errands: vec![(5000, Errand::Patch(json!({"spec": {"replicas": 8}})))],
        ..Deeds::default()
    };
    assert_eq!(wrongs(&history, &deeds, 4), Vec::<String>::new());
}

/// The number of pods in x by the status and how many it misses, the subsets of the pods, and how much is wrong when x takes two of
/// three.
#[rstest]
#[case::fine(2, 0, "xxy", 0)]
#[case::counted_wrong(1, 1, "xxy", 2)]
#[case::one_without_a_subset(2, 0, "xxy-", 1)]
#[case::beyond(3, 0, "xxxy", 1)]
#[case::misses_one(2, 1, "xxy", 1)]
fn the_end(#[case] count: i64, #[case] missing: i64, #[case] subsets: &str, #[case] wrong: usize) {
    let spread = json!({
        "spec": {"subsets": [{"name": "x", "maxReplicas": 2}, {"name": "y"}]},
        "status": {"subsetStatuses": [
            {"name": "x", "replicas": count, "missingReplicas": missing}, {"name": "y", "replicas": 1, "missingReplicas": -1},
        ]},
    });
    let pods: Vec<Value> = subsets
        .chars()
        .map(|subset| pod_object("p", &subset.to_string(), "Running"))
        .collect();
    let whole = Whole {
        replicas: 3,
        all_placed: true,
        within_maxima: true,
    };
    let found = unlike(&spread, &pods, &whole);
    assert_eq!(found.len(), wrong, "{found:?}");
}
