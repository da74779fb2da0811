//! The rows of budgets' numbers, and their records.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::pods::test_pods::TestPod;

fn budget(spec: Value, status: Value) -> PodUnavailableBudget {
    serde_json::from_value(json!({
        "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
        "metadata": { "name": "pub", "namespace": "default", "generation": 3 }, "spec": spec, "status": status,
    }))
    .unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Pods `p0`, `p1`, … of which the first `available` are available.
fn observed(pods: usize, available: usize, total: i32, second: i64) -> Observed {
    let pods = (0..pods).map(|number| {
        let pod = TestPod::new(&format!("p{number}"));
        let pod = if number < available { pod } else { pod.not_ready() };
        Arc::new(CachedPod::from(pod.build()))
    });
    Observed {
        pods: pods.collect(),
        total,
        now: at(second),
    }
}

/// Rows 1 to 19: the total, the spec, how many pods are available; how many must be, and how many may go.
#[rstest]
#[case::row_1(4, json!({ "maxUnavailable": 1 }), 4, 3, 1)]
#[case::row_2(3, json!({ "maxUnavailable": "34%" }), 3, 1, 2)]
#[case::row_3(3, json!({ "maxUnavailable": "33%" }), 3, 2, 1)]
#[case::row_4(3, json!({ "minAvailable": "70%" }), 3, 3, 0)]
#[case::row_5(3, json!({ "minAvailable": 1 }), 2, 1, 1)]
#[case::row_6(3, json!({ "minAvailable": 5 }), 3, 5, 0)]
#[case::row_7(2, json!({ "maxUnavailable": 5 }), 2, 0, 2)]
#[case::row_8(10, json!({ "maxUnavailable": "0%" }), 10, 10, 0)]
#[case::row_9(10, json!({ "maxUnavailable": "100%" }), 3, 0, 3)]
#[case::row_10(10, json!({ "minAvailable": 0 }), 3, 0, 3)]
#[case::row_11(10, json!({ "maxUnavailable": "10%" }), 7, 9, 0)]
#[case::row_12(2, json!({ "maxUnavailable": 0 }), 4, 2, 2)]
#[case::row_13(0, json!({ "maxUnavailable": 1 }), 2, 0, 2)]
#[case::row_14(-1, json!({ "maxUnavailable": 1 }), 3, 0, 3)]
#[case::row_15(-1, json!({ "minAvailable": 2 }), 3, 2, 1)]
#[case::row_16(3, json!({ "maxUnavailable": 1 }), 3, 2, 1)]
#[case::row_17(10, json!({ "maxUnavailable": "10%" }), 4, 9, 0)]
#[case::row_18(5, json!({ "maxUnavailable": "50%" }), 5, 2, 3)]
#[case::row_19(4, json!({ "maxUnavailable": 1 }), 5, 3, 2)]
#[case::neither(4, json!({}), 4, 0, 4)]
fn numbers(
    #[case] total: i32,
    #[case] spec: Value,
    #[case] available: usize,
    #[case] want_desired: i32,
    #[case] want_allowed: i32,
) {
    let budget = budget(spec, json!(null));
    let desired = desired(&budget.spec, total).unwrap();
    let status = next(&budget, &observed(available, available, total, 0), desired).status;
    assert_eq!(
        (status.desired_available, status.unavailable_allowed),
        (want_desired, want_allowed)
    );
    assert_eq!((status.total_replicas, status.observed_generation), (total, 3));
    assert_eq!(status.current_available, i32::try_from(available).unwrap());
}

#[test]
fn a_number_that_cannot_be_read_is_told() {
    let budget = budget(json!({ "maxUnavailable": "x" }), json!(null));
    assert!(desired(&budget.spec, 3).is_err());
}

/// Pods `p0` and `p1` are there. Both records were made at second 100.
#[rstest]
#[case::kept("disruptedPods", "p0", 120, "p0", "", 1, Some(0))]
#[case::row_39("disruptedPods", "p0", 121, "", "p0", 2, None)]
#[case::gone("disruptedPods", "p7", 101, "", "", 2, None)]
#[case::an_update("unavailablePods", "p1", 104, "p1", "", 1, Some(6))]
#[case::an_update_that_is_over("unavailablePods", "p1", 111, "", "", 2, None)]
fn records(
    #[case] field: &str,
    #[case] pod: &str,
    #[case] now: i64,
    #[case] kept: &str,
    #[case] not_deleted: &str,
    #[case] available: i32,
    #[case] requeue_s: Option<u64>,
) {
    let status = json!({ field: { pod: at(100).to_string() } });
    let got = next(
        &budget(json!({ "maxUnavailable": 1 }), status),
        &observed(2, 2, 2, now),
        1,
    );
    let records = match field {
        "disruptedPods" => &got.status.disrupted_pods,
        _ => &got.status.unavailable_pods,
    };
    assert_eq!(records.keys().cloned().collect::<Vec<_>>().join(" "), kept);
    assert_eq!(got.not_deleted.join(" "), not_deleted);
    assert_eq!(got.status.current_available, available);
    assert_eq!(got.requeue.map(|delay| delay.as_secs()), requeue_s);
}

#[test]
fn pods_without_a_budget_are_named() {
    let mut seen = observed(2, 2, 2, 0);
    let related = TestPod::new("p1")
        .annotation(labels::RELATED_BUDGET, "other")
        .build();
    seen.pods[1] = Arc::new(CachedPod::from(related));
    let names: Vec<String> = unrelated(&seen).into_iter().map(|pod| pod.name).collect();
    assert_eq!(names, ["p0"]);
}
