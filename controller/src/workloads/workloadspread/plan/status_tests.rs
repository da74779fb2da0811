//! The rows of missing pods, and the versions.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::test_world::spread;
use super::*;
use crate::pods::test_pods::TestPod;

const NOW: i64 = 100;

fn at(second: i64) -> String {
    Timestamp::from_second(second).unwrap().to_string()
}

/// A spread of one subset with pods: `x` is active, `d` is active and recorded as being deleted, `i` is over. The records are of the
/// version that is ignored.
fn look(limit: &str, replicas: i32, pods: &str, creating: Option<i64>) -> Said {
    let mut spread = spread("CloneSet", &format!("a {limit}"));
    let pods: Vec<(Arc<CachedPod>, Option<String>)> = pods
        .split(' ')
        .filter(|letter| !letter.is_empty())
        .enumerate()
        .map(|(number, letter)| {
            let pod = TestPod::new(&format!("{letter}{number}"));
            let pod = if letter == "i" {
                pod.phase("Succeeded")
            } else {
                pod
            };
            (Arc::new(CachedPod::from(pod.build())), Some("a".to_owned()))
        })
        .collect();
    let going = pods.iter().filter(|(pod, _)| pod::name(pod).starts_with('d'));
    let deleting: serde_json::Map<String, Value> = going
        .map(|(pod, _)| (pod::name(pod).to_owned(), json!(at(NOW - 5))))
        .collect();
    let creating: serde_json::Map<String, Value> = creating
        .map(|age| ("q".to_owned(), json!(at(NOW - age))))
        .into_iter()
        .collect();
    let status = json!([{ "name": "a", "replicas": 0, "missingReplicas": 0, "creatingPods": creating, "deletingPods": deleting }]);
    let status = json!({ "versionedSubsetStatuses": { "versionIgnored": status } });
    spread.status = serde_json::from_value(status).unwrap();
    let groups = Groups::of(&spread, pods);
    status_of(&spread, &groups, replicas)
}

fn status_of(spread: &WorkloadSpread, groups: &Groups, replicas: i32) -> Said {
    status(spread, groups, replicas, Timestamp::from_second(NOW).unwrap())
}

#[rstest]
#[case::row_1("2", 0, "x", None, (1, 1), "")]
#[case::row_2("2", 0, "x d", None, (1, 2), "")]
#[case::row_3("1", 0, "d x x", None, (0, 3), "")]
#[case::row_4("1", 0, "x x d", None, (1, 3), "")]
#[case::row_5("2", 0, "x", Some(10), (0, 1), "")]
#[case::row_6("2", 0, "x", Some(31), (1, 1), "CreatePodFailed Pod default/q was expected to be created but it wasn't")]
#[case::row_7("2", 0, "i i", None, (2, 0), "")]
#[case::row_8("-", 0, "x x", Some(10), (-1, 2), "")]
#[case::row_9("25%", 2, "x x", None, (0, 2), "")]
#[case::unknown("25%", 0, "x", None, (0, 1), "")]
fn missing_pods(
    #[case] limit: &str,
    #[case] replicas: i32,
    #[case] pods: &str,
    #[case] creating: Option<i64>,
    #[case] want: (i32, i32),
    #[case] events: &str,
) {
    let said = look(limit, replicas, pods, creating);
    let status = &said.status.versioned_subset_statuses["versionIgnored"][0];
    assert_eq!((status.missing_replicas, status.replicas), want);
    let told: Vec<String> = said
        .events
        .iter()
        .map(|(_, reason, text)| format!("{reason} {text}"))
        .collect();
    assert_eq!(told.join("; "), events);
}

/// Row 10.
#[test]
fn a_workload_without_pods_has_no_versions() {
    let said = look("25%", 4, "", None);
    let status = &said.status.subset_statuses[0];
    assert_eq!((status.missing_replicas, status.replicas), (1, 0));
    assert!(said.status.versioned_subset_statuses.is_empty());
    assert_eq!(said.status.observed_generation, 2);
}

#[rstest]
#[case(Some(10), true, Some(20))]
#[case(Some(31), false, None)]
fn a_version_without_pods_stays_while_one_is_awaited(
    #[case] creating: Option<i64>,
    #[case] stays: bool,
    #[case] requeue_s: Option<u64>,
) {
    let said = look("2", 0, "", creating);
    assert_eq!(
        said.status
            .versioned_subset_statuses
            .contains_key("versionIgnored"),
        stays
    );
    assert_eq!(said.requeue.map(|delay| delay.as_secs()), requeue_s);
}

#[test]
fn a_deletion_that_does_not_come_is_told() {
    let mut spread = spread("CloneSet", "a 2");
    let status =
        json!([{ "name": "a", "replicas": 1, "missingReplicas": 2, "deletingPods": { "p": at(NOW - 16) } }]);
    spread.status =
        serde_json::from_value(json!({ "versionedSubsetStatuses": { "versionIgnored": status } })).unwrap();
    let pod = Arc::new(CachedPod::from(TestPod::new("p").build()));
    let said = status_of(&spread, &Groups::of(&spread, [(pod, Some("a".to_owned()))]), 0);
    let status = &said.status.versioned_subset_statuses["versionIgnored"][0];
    assert!(status.deleting_pods.is_empty());
    assert_eq!(status.missing_replicas, 1);
    assert_eq!(
        said.events[0].2,
        "Pod default/p was expected to be deleted but it wasn't"
    );
}
