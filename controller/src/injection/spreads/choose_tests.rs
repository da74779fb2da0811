//! The rows of new pods and of pods that go.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A spread with these subsets: `name limit`, and these statuses: `name missing`, with `F` for one that is not schedulable and a
/// letter and a name for a record. Statuses are of the version that is ignored.
fn spread(subsets: &str, statuses: &str) -> WorkloadSpread {
    let subsets: Vec<Value> = subsets
        .split(", ")
        .map(|text| {
            let (name, limit) = text.split_once(' ').unwrap();
            let limit = match limit {
                "-" => Value::Null,
                limit => limit
                    .parse::<i32>()
                    .map_or_else(|_| json!(limit), |number| json!(number)),
            };
            json!({ "name": name, "maxReplicas": limit })
        })
        .collect();
    let statuses: Vec<Value> = statuses
        .split(", ")
        .filter(|text| !text.is_empty())
        .map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            let mut status = json!({ "name": words[0], "replicas": 0, "missingReplicas": words[1].parse::<i32>().unwrap() });
            for word in &words[2..] {
                match word.split_once(':') {
                    Some(("c", pod)) => status["creatingPods"] = json!({ pod: "2026-01-01T00:00:00Z" }),
                    Some(("d", pod)) => status["deletingPods"] = json!({ pod: "2026-01-01T00:00:00Z" }),
                    _ => status["conditions"] = json!([{ "type": "Schedulable", "status": "False" }]),
                }
            }
            status
        })
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread", "metadata": { "name": "ws" },
        "spec": { "targetRef": { "apiVersion": "v1", "kind": "CloneSet", "name": "x" }, "subsets": subsets },
        "status": { "subsetStatuses": statuses, "versionedSubsetStatuses": { IGNORED: statuses } },
    }))
    .unwrap()
}

fn moving(name: &str, replicas: i32) -> Moving<'_> {
    Moving {
        name,
        version: IGNORED,
        replicas,
        seed: Seed(1),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// The statuses as text: `name missing`, and the records.
fn shown(status: Option<WorkloadSpreadStatus>) -> String {
    let Some(status) = status else {
        return "no write".to_owned();
    };
    let each = status.versioned_subset_statuses[IGNORED].iter().map(|status| {
        let mut text = format!("{} {}", status.name, status.missing_replicas);
        for (letter, records) in [("c", &status.creating_pods), ("d", &status.deleting_pods)] {
            for pod in records.keys() {
                let pod = if pod.len() == 36 { "uuid" } else { pod };
                text.push_str(&format!(" {letter}:{pod}"));
            }
        }
        text
    });
    each.collect::<Vec<_>>().join(", ")
}

#[rstest]
#[case::row_1("a 2, b -", "a 2, b -1", "p", 0, Some("a"), "a 1 c:p, b -1")]
#[case::row_2("a 2, b -", "a 0, b -1", "p", 0, Some("b"), "no write")]
#[case::row_3("a 2, b 2", "a 0, b 0", "p", 0, None, "no write")]
#[case::row_4("a 2, b -", "a 1 F, b -1", "p", 0, Some("b"), "no write")]
#[case::row_5("a 2, b 2", "a 1 F, b 2", "p", 0, Some("b"), "a 1, b 1 c:p")]
#[case::row_6("a 2, b 2", "a 1 c:p, b 1", "p", 0, Some("a"), "no write")]
#[case::being_deleted("a 2, b 2", "a 1, b 1 d:p", "p", 0, Some("b"), "no write")]
#[case::row_7("a 2", "a 1", "", 0, Some("a"), "a 0 c:uuid")]
#[case::row_8("a 25%, b 75%", "", "p", 4, Some("a"), "a 0 c:p, b 3")]
#[case::has_grown("a 25%, b 75%", "a 0, b 0", "p", 8, Some("a"), "a 1 c:p, b 6")]
#[case::row_9("a 25%", "", "p", 0, None, "no write")]
fn new_pods(
    #[case] subsets: &str,
    #[case] statuses: &str,
    #[case] pod: &str,
    #[case] replicas: i32,
    #[case] subset: Option<&str>,
    #[case] want: &str,
) {
    let (chosen, status) = come(&spread(subsets, statuses), moving(pod, replicas));
    let uid = chosen.as_ref().map_or("", |chosen| &chosen.uid).to_owned();
    assert_eq!(chosen.map(|chosen| chosen.subset).as_deref(), subset);
    assert_eq!(shown(status), want);
    assert_eq!(uid.len(), if want.contains("uuid") { 36 } else { 0 });
}

/// The definition of an older OpenKruise has no statuses by version: those that are written are lost.
#[test]
fn pods_are_counted_without_statuses_by_version() {
    let mut spread = spread("a 2, b -", "a 2, b -1");
    let mut subsets = Vec::new();
    for pod in ["p", "q", "r"] {
        if let Some(status) = &mut spread.status {
            status.versioned_subset_statuses.clear();
        }
        let (chosen, status) = come(&spread, moving(pod, 0));
        subsets.extend(chosen.map(|chosen| chosen.subset));
        spread.status = status.or(spread.status);
    }
    assert_eq!(subsets, ["a", "a", "b"]);
}

#[rstest]
#[case("a -", true)]
#[case("a 1", false)]
#[case("a -, b -", false)]
fn row_10(#[case] subsets: &str, #[case] want: bool) {
    assert_eq!(has_one_subset(&spread(subsets, "")), want);
}

#[rstest]
#[case::row_1("a 1, b -", "a 0, b -1", "a", "a 1 d:p, b -1")]
#[case::row_2("a 1, b -", "a 0, b -1", "b", "no write")]
#[case::row_3("a 1", "a 0 d:p", "a", "no write")]
#[case::row_4("a 1", "", "a", "a 2 d:p")]
#[case::row_5("a 1", "a 0", "x", "no write")]
fn pods_that_go(#[case] subsets: &str, #[case] statuses: &str, #[case] subset: &str, #[case] want: &str) {
    assert_eq!(
        shown(go(&spread(subsets, statuses), subset, moving("p", 0))),
        want
    );
}

#[rstest]
#[case("", "x-0 x-1 x-2 x-3 x-9", "a b b c c")]
#[case("a 0 F, b 0, c 0", "x-0 x-1 x-2", "b b c")]
#[case("", "x x-y", "a a")]
fn ordinals(#[case] statuses: &str, #[case] pods: &str, #[case] want: &str) {
    let spread = spread("a 1, b 2, c -", statuses);
    let got: Vec<String> = pods
        .split(' ')
        .filter_map(|pod| by_ordinal(&spread, pod))
        .collect();
    assert_eq!(got.join(" "), want);
}

#[test]
fn an_ordinal_beyond_all_limits_has_no_subset() {
    assert_eq!(by_ordinal(&spread("a 1, b 2", ""), "x-3"), None);
}
