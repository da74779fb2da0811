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

/// The distribution of the data 1 to these namespaces and to those with a label, and the counts in its status.
fn distribution(at_ms: i64, included: &[&str], desired: i64, succeeded: i64) -> Change {
    let included: Vec<Value> = included.iter().map(|name| json!({"name": name})).collect();
    let object = json!({
        "metadata": {"name": "a"},
        "spec": {
            "targets": {"includedNamespaces": {"list": included}, "namespaceLabelSelector": {"matchLabels": {"x": "1"}}},
            "resource": {"kind": "ConfigMap", "data": {"a": "1"}},
        },
        "status": {"desired": desired, "succeeded": succeeded, "failed": desired - succeeded},
    });
    change(at_ms, RESOURCE, Modified, object)
}

fn namespace(at_ms: i64, kind: ChangeKind, name: &str, label: &str) -> Change {
    let object = json!({"metadata": {"name": name, "labels": {"x": label}}});
    change(at_ms, "namespaces", kind, object)
}

/// An object of the copies' name, which the distribution owns or not.
fn copy(at_ms: i64, kind: ChangeKind, namespace: &str, owned: bool, data: &str) -> Change {
    let owners = match owned {
        true => json!([{"kind": "ResourceDistribution", "name": "a"}]),
        false => json!([]),
    };
    let metadata = json!({"name": "conf", "namespace": namespace, "ownerReferences": owners});
    change(
        at_ms,
        "configmaps",
        kind,
        json!({"metadata": metadata, "data": {"a": data}}),
    )
}

/// A copy in the namespace n, which is wanted, and none in m.
fn begun() -> Vec<Change> {
    vec![
        namespace(0, Added, "n", ""),
        namespace(0, Added, "m", ""),
        distribution(0, &["n"], 1, 1),
        copy(1, Added, "n", true, "1"),
    ]
}

#[rstest]
#[case::fine(vec![], None)]
#[case::another_one(vec![copy(9000, Modified, "n", true, "2")], Some("the copy in n is another one"))]
#[case::none(vec![copy(9000, Deleted, "n", true, "1")], Some("n has no copy"))]
#[case::elsewhere(vec![copy(9000, Added, "m", true, "1")], Some("in m: created where no target is"))]
#[case::left_behind(vec![distribution(9000, &[], 0, 0)], Some("n has a copy"))]
#[case::just_before(
    vec![distribution(9000, &["m"], 1, 1), distribution(9001, &[], 0, 0), copy(9002, Added, "m", true, "1"),
         copy(9003, Deleted, "m", true, "1"), copy(9003, Deleted, "n", true, "1")], None)]
#[case::labelled(
    vec![namespace(9000, Modified, "m", "1"), copy(9001, Added, "m", true, "1"), distribution(9002, &["n"], 2, 2)], None)]
#[case::foreign(
    vec![copy(5000, Added, "m", false, "9"), distribution(9000, &["n", "m"], 2, 1)], None)]
#[case::foreign_taken_over(
    vec![copy(5000, Added, "m", false, "9"), distribution(9000, &["n", "m"], 2, 2), copy(9001, Modified, "m", true, "1")],
    Some("in m: a foreign object was made a copy"))]
#[case::foreign_deleted(
    vec![copy(5000, Added, "m", false, "9"), copy(9000, Deleted, "m", false, "9")],
    Some("in m: a foreign object was deleted"))]
#[case::foreign_gone_with_its_namespace(
    vec![copy(5000, Added, "m", false, "9"), namespace(6000, Deleted, "m", "")], None)]
#[case::missing_namespace(vec![distribution(9000, &["n", "o"], 2, 1)], None)]
#[case::counted_wrong(vec![distribution(9000, &["n"], 2, 1)], Some("desired is 2, not 1"))]
fn a_fault_is_seen(#[case] more: Vec<Change>, #[case] expected: Option<&str>) {
    let history = [begun(), more].concat();
    let found = wrongs(&history, &Deeds::default());
    match expected {
        None => assert!(found.is_empty(), "{found:?}"),
        Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
    }
}

#[test]
fn users_delete_what_is_theirs() {
    let more = vec![
        copy(5000, Added, "m", false, "9"),
        copy(9000, Deleted, "m", false, "9"),
    ];
    let metadata = json!({"name": "conf", "namespace": "m"});
    let deeds = Deeds {
        errands: vec![(
            8999,
            Errand::Delete(json!({"kind": "ConfigMap", "metadata": metadata})),
        )],
        ..Deeds::default()
    };
    assert_eq!(wrongs(&[begun(), more].concat(), &deeds), Vec::<String>::new());
}
