//! Rows: which pods stand for nothing yet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::json;

use super::super::adaptive::tests::{shown, status, waiting};
use super::super::test_world::{child, set};
use super::*;
use crate::api::v1alpha1::UnitedDeploymentCondition;
use crate::pods::test_pods::TestPod;

const NOW: i64 = 100;

/// Pods from words such as `new=true/80`: the revision, the label if there is one, and the second since which the pod is ready, or with
/// a `w` the one since which it waits for a node.
fn pods(words: &str) -> Vec<Arc<CachedPod>> {
    let pod = |(at, word): (usize, &str)| {
        let (kind, time) = word.split_once('/').unwrap();
        let (revision, label) = kind.split_once('=').unwrap_or((kind, ""));
        let name = format!("p{at}");
        let pod = match time.strip_prefix('w') {
            Some(created) => waiting(&name, created.parse().unwrap()),
            None => TestPod::new(&name).ready_at(time.parse().unwrap()),
        };
        let revision = if revision == "new" { "r" } else { "r-old" };
        let pod = pod.label(labels::SUBSET_REVISION, revision);
        let pod = match label {
            "" => pod,
            label => pod.label(labels::RESERVED_POD, label),
        };
        Arc::new(CachedPod::from(pod.build()))
    };
    words.split_whitespace().enumerate().map(pod).collect()
}

/// The condition of the subset before, its pods, since when an update goes on, the partition; the reserved pods and those of them that
/// are late, the changed labels, the condition, and the milliseconds until the next look. Pods may wait 5 s, and prove themselves by
/// being ready for 15 s.
#[rstest]
#[case::healthy("True@1", "new=false/10", (None, 0), (0, 0), "", "True@1 reschedule: m", None)]
#[case::first_label("", "new/10", (None, 0), (0, 0), "p0-", "True@100 reschedule: no reserved pods", None)]
#[case::waits("True@1", "new=false/w97", (None, 0), (0, 0), "", "True@1 reschedule: m", Some(2001))]
#[case::waits_too_long("True@1", "new=false/w94", (None, 0), (1, 0), "p0+", "False@100 reschedule: reserved pods found", None)]
#[case::made_without_room("False@1", "new/99", (None, 0), (1, 0), "p0+", "False@1 reschedule: m", Some(15_000))]
#[case::made_with_room("True@1", "new/99", (None, 0), (0, 0), "p0-", "True@1 reschedule: m", None)]
#[case::not_proven("False@1", "new=true/90", (None, 0), (1, 0), "", "False@1 reschedule: m", Some(5001))]
#[case::proven("False@1", "new=true/84", (None, 0), (0, 0), "p0-", "True@100 reschedule: no reserved pods", None)]
#[case::still_without_a_node("False@1", "new=true/w10", (None, 0), (1, 0), "", "False@1 reschedule: m", Some(15_000))]
#[case::reserved_and_old("False@1", "old=true/10", (None, 0), (1, 0), "", "False@1 reschedule: m", Some(15_000))]
#[case::updated_in_time("True@1", "old=false/10", (Some(97), 0), (0, 0), "", "True@1 reschedule: m", Some(2001))]
#[case::updated_too_late("True@1", "old=false/10", (Some(94), 0), (1, 1), "p0+", "False@100 reschedule: reserved pods found", None)]
#[case::no_update("True@1", "old=false/10", (None, 0), (0, 0), "", "True@1 reschedule: m", None)]
#[case::kept_by_the_partition("True@1", "old=false/10 old=false/10", (Some(94), 1), (1, 1), "p1+", "False@100 reschedule: reserved pods found", None)]
fn subsets(
    #[case] before: &str,
    #[case] words: &str,
    #[case] (updating_since, partition): (Option<i64>, i32),
    #[case] want: (i32, i32),
    #[case] labels: &str,
    #[case] condition: &str,
    #[case] requeue_ms: Option<u128>,
) {
    let mut child = child("a", "r");
    child.pods = pods(words);
    let whole = UnitedDeploymentStatus {
        conditions: updating_since
            .map(|since| UnitedDeploymentCondition {
                kind: conditions::UPDATED.to_owned(),
                status: "False".to_owned(),
                last_transition_time: Some(Time(Timestamp::from_second(since).unwrap())),
                ..UnitedDeploymentCondition::default()
            })
            .into_iter()
            .collect(),
        ..UnitedDeploymentStatus::default()
    };
    let (set, now) = (set("Reserve"), Timestamp::from_second(NOW).unwrap());
    let look = Look::new(&set, &whole, "r", now);
    let (mut status, mut labelled, mut requeue) = (status(before), Vec::new(), Requeue::default());
    let verdict = look.at(&child, partition, &mut status, &mut labelled, &mut requeue);
    assert_eq!((verdict.reserved, verdict.late), want);
    assert_eq!(verdict.is_unschedulable, want.0 > 0);
    let changed: Vec<String> = labelled
        .iter()
        .map(|(pod, is_reserved)| format!("{}{}", pod.name, if *is_reserved { '+' } else { '-' }))
        .collect();
    assert_eq!(changed.join(" "), labels);
    assert_eq!(shown(&status), condition);
    assert_eq!(requeue.0.map(|wait| wait.as_millis()), requeue_ms);
}

#[test]
fn a_terminating_pod_of_the_old_revision_is_not_reserved() {
    let set = set("Reserve");
    let now = Timestamp::from_second(NOW).unwrap();
    let look = Look {
        update_due: Timestamp::from_second(1).ok(),
        ..Look::new(&set, &UnitedDeploymentStatus::default(), "r", now)
    };
    let mut child = child("a", "r");
    let pod = TestPod::new("p").label(labels::SUBSET_REVISION, "r-old");
    let pod = pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z"));
    child.pods = vec![Arc::new(CachedPod::from(pod.build()))];
    let verdict = look.at(
        &child,
        0,
        &mut status("True@1"),
        &mut Vec::new(),
        &mut Requeue::default(),
    );
    assert_eq!(verdict.reserved, 0);
}
