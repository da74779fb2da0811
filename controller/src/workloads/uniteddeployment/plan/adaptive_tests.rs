//! Rows: the room of a subset, by its pods.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::json;

use super::super::test_world::{child, set};
use super::*;
use crate::api::v1alpha1::SubsetCondition;
use crate::pods::CachedPod;
use crate::pods::test_pods::TestPod;

/// A pod that no node takes, created at that second.
pub(in crate::workloads::uniteddeployment) fn waiting(name: &str, created: i64) -> TestPod {
    let conditions = json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }]);
    let pod = TestPod::new(name).phase("Pending").node("").created_at(created);
    pod.set("/status/conditions", conditions)
}

pub(in crate::workloads::uniteddeployment) fn status(word: &str) -> SubsetStatus {
    let condition = word.split_once('@').map(|(value, since)| SubsetCondition {
        kind: "Schedulable".to_owned(),
        status: value.to_owned(),
        last_transition_time: Some(Time(Timestamp::from_second(since.parse().unwrap()).unwrap())),
        reason: "reschedule".to_owned(),
        message: "m".to_owned(),
    });
    SubsetStatus {
        name: "a".to_owned(),
        conditions: condition.into_iter().collect(),
        ..SubsetStatus::default()
    }
}

pub(in crate::workloads::uniteddeployment) fn shown(status: &SubsetStatus) -> String {
    let condition = schedulable(status).map(|condition| {
        let since = condition.last_transition_time.as_ref().unwrap().0.as_second();
        format!(
            "{}@{since} {}: {}",
            condition.status, condition.reason, condition.message
        )
    });
    condition.unwrap_or_default()
}

/// The condition before as `value@second`, when pods that no node takes were created, how many pods are ready of how many, the second
/// of the pass; the condition then, whether the subset gets no pods, and the milliseconds until the next look. Pods may wait 5 s, a
/// subset is left out for 15 s.
#[rstest]
#[case::healthy("", &[], (2, 2), 100, "", false, None)]
#[case::waits("", &[97], (1, 2), 100, "", false, Some(2001))]
#[case::at_the_very_end("", &[95], (1, 2), 100, "", false, Some(1))]
#[case::too_long("", &[94], (1, 2), 100, "False@100 reschedule: timeout pending pods found", true, Some(15_000))]
#[case::one_of_two("", &[94, 98], (0, 2), 100, "False@100 reschedule: timeout pending pods found", true, Some(3001))]
#[case::all_ready_all_the_same("", &[94], (2, 2), 100, "", false, None)]
#[case::left_out("False@90", &[], (0, 0), 100, "False@90 reschedule: m", true, Some(5001))]
#[case::more_pods_do_not_extend_it("False@90", &[94], (0, 1), 100, "False@90 reschedule: m", true, Some(5001))]
#[case::recovers("False@85", &[], (0, 0), 100, "True@100 recover: unschedulable subset recovered after 15.000000 seconds", false, None)]
#[case::recovers_and_fails_again(
    "False@85", &[90], (0, 1), 100, "False@100 reschedule: timeout pending pods found", true, Some(15_000)
)]
#[case::again("True@90", &[90], (0, 1), 100, "False@100 reschedule: timeout pending pods found", true, Some(15_000))]
fn subsets(
    #[case] before: &str,
    #[case] waiting_since: &[i64],
    #[case] (ready, replicas): (i32, i32),
    #[case] now: i64,
    #[case] condition: &str,
    #[case] is_out: bool,
    #[case] requeue_ms: Option<u128>,
) {
    let mut child = child("a", "r");
    (child.ready, child.replicas) = (ready, replicas);
    let pods = waiting_since.iter().zip(["p", "q"]);
    child.pods = pods
        .map(|(created, name)| Arc::new(CachedPod::from(waiting(name, *created).build())))
        .collect();
    let (mut status, mut requeue) = (status(before), Requeue::default());
    let now = Timestamp::from_second(now).unwrap();
    let verdict = look(&set("Adaptive"), &child, &mut status, now, &mut requeue);
    assert_eq!(shown(&status), condition);
    assert_eq!(verdict.is_unschedulable, is_out);
    assert_eq!(requeue.0.map(|wait| wait.as_millis()), requeue_ms);
}

/// Pods that do not count as waiting too long.
#[rstest]
#[case::terminating(waiting("p", 0).set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z")))]
#[case::on_a_node(waiting("p", 0).node("n1"))]
#[case::running(waiting("p", 0).set("/status/phase", json!("Running")))]
#[case::for_another_reason(
    waiting("p", 0).set("/status/conditions", json!([{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }]))
)]
#[case::not_seen_by_the_scheduler(waiting("p", 0).set("/status/conditions", json!([])))]
fn others(#[case] pod: TestPod) {
    assert_eq!(patience_ends(&set("Adaptive"), &pod.build()), None);
}

#[test]
fn negative_seconds_end_at_once() {
    let mut set = set("Adaptive");
    let adaptive = set.spec.topology.schedule_strategy.adaptive.as_mut().unwrap();
    adaptive.reschedule_critical_seconds = Some(-5);
    let end = patience_ends(&set, &waiting("p", 100).build());
    assert_eq!(end.map(Timestamp::as_second), Some(95));
}
