//! Rows: the steps of a pass over a request for container `main` of pod `p`, which was made at second 0.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::kit::json::merge;

/// A request, with these changes.
fn request(change: &Value) -> ContainerRecreateRequest {
    let mut request = json!({
        "metadata": {
            "name": "r", "namespace": "n", "creationTimestamp": "1970-01-01T00:00:00Z",
            "labels": { REQUEST_POD_UID: "u", REQUEST_ACTIVE: "true" },
        },
        "spec": { "podName": "p", "containers": [{ "name": "main" }], "strategy": {} },
    });
    merge(&mut request, change.clone());
    serde_json::from_value(request).unwrap()
}

/// A pod with the gate, whose container was started at that second.
fn pod(change: &Value, started: i64) -> Arc<CachedPod> {
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u" },
        "spec": { "readinessGates": [{ "conditionType": "KruisePodReady" }] },
        "status": { "containerStatuses": [{
            "name": "main", "containerID": "containerd://b", "ready": true, "restartCount": 1,
            "state": { "running": { "startedAt": Timestamp::from_second(started).unwrap().to_string() } },
        }] },
    });
    merge(&mut pod, change.clone());
    Arc::new(serde_json::from_value(pod).unwrap())
}

use crate::pods::CachedPod;

/// The steps in words, and after how many seconds the next look comes.
fn shown(plan: &Plan) -> String {
    let mut words: Vec<String> = plan.steps.iter().map(|step| format!("{step:?}")).collect();
    words.extend(plan.again.map(|again| format!("in {}s", again.as_secs())));
    words.join(", ")
}

fn check(change: &Value, pod: Option<Arc<CachedPod>>, now: i64, expect: &str) {
    let observed = Observed {
        request: Arc::new(request(change)),
        pod,
        now: Timestamp::from_second(now).unwrap(),
    };
    assert_eq!(shown(&plan(&observed)), expect);
}

fn phase(phase: &str) -> Value {
    json!({ "status": { "phase": phase } })
}

fn recreating(spec: Value) -> Value {
    let synced = json!({ REQUEST_STATUSES: "[]" });
    json!({ "metadata": { "annotations": synced }, "spec": spec, "status": { "phase": "Recreating" } })
}

const GONE: &str = "Complete(\"pod has gone\")";

/// The request, its age in seconds, and the plan. The container was started before the request was made.
#[rstest]
#[case::the_daemon_is_slow(json!({}), 59, "in 1s")]
#[case::the_daemon_is_gone(json!({}), 60, "Complete(\"daemon has not responded for a long time\")")]
#[case::in_the_queue(phase("Pending"), 300, "")]
#[case::deadline_in_the_queue(json!({ "spec": { "activeDeadlineSeconds": 5 }, "status": { "phase": "Pending" } }), 3, "in 2s")]
#[case::deadline_before_the_daemon(json!({ "spec": { "activeDeadlineSeconds": 5 } }), 3, "in 2s")]
#[case::deadline_after_the_daemon(json!({ "spec": { "activeDeadlineSeconds": 90 } }), 3, "in 57s")]
#[case::deadline(
    recreating(json!({ "activeDeadlineSeconds": 5 })), 5, "Complete(\"recreating has exceeded the activeDeadlineSeconds\")")]
#[case::deadline_beyond_all_times(recreating(json!({ "activeDeadlineSeconds": i64::MAX })), 5, "in 253402207195s")]
#[case::begins(phase("Recreating"), 1, "Sync(\"[]\")")]
#[case::goes_on(recreating(json!({})), 1, "")]
#[case::taken_out(
    recreating(json!({ "strategy": { "unreadyGracePeriodSeconds": 0 } })), 1, "Hold, TakeOut, NoteUnready")]
#[case::taken_out_in_one_pass(
    json!({ "spec": { "strategy": { "unreadyGracePeriodSeconds": 3 } }, "status": { "phase": "Recreating" } }), 1,
    "Sync(\"[]\"), Hold, TakeOut, NoteUnready")]
#[case::held_already(
    json!({ "metadata": { "annotations": { REQUEST_STATUSES: "[]" }, "finalizers": [REQUEST_UNREADY] },
        "spec": { "strategy": { "unreadyGracePeriodSeconds": 3 } }, "status": { "phase": "Recreating" } }), 1,
    "TakeOut, NoteUnready")]
#[case::is_out(
    json!({ "metadata": { "annotations": { REQUEST_STATUSES: "[]", REQUEST_UNREADY: "1970-01-01T00:00:01Z" } },
        "spec": { "strategy": { "unreadyGracePeriodSeconds": 3 } }, "status": { "phase": "Recreating" } }), 1, "")]
fn a_request_that_lasts(#[case] change: Value, #[case] now: i64, #[case] expect: &str) {
    check(&change, Some(pod(&json!({}), -9)), now, expect);
}

#[test]
fn a_pod_without_the_gate_just_waits() {
    let change = recreating(json!({ "strategy": { "unreadyGracePeriodSeconds": 3 } }));
    let pod = pod(&json!({ "spec": { "readinessGates": [] } }), -9);
    check(&change, Some(pod), 1, "NoteUnready");
}

/// The pod of a request.
#[rstest]
#[case::no_pod(None, GONE)]
#[case::another_pod(Some(json!({ "metadata": { "uid": "other" } })), GONE)]
#[case::a_pod_that_goes(Some(json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:09Z" } })), GONE)]
#[case::its_pod(Some(json!({})), "")]
fn pods(#[case] change: Option<Value>, #[case] expect: &str) {
    let pod = change.map(|change| pod(&change, -9));
    check(&recreating(json!({})), pod, 1, expect);
}

/// When the container was started, and the annotation.
#[rstest]
#[case::before(-1, "[]")]
#[case::in_the_same_second(
    0,
    r#"[{\"name\":\"main\",\"ready\":true,\"restartCount\":1,\"containerID\":\"containerd://b\"}]"#
)]
fn statuses_since_the_request(#[case] started: i64, #[case] expect: &str) {
    let pod = pod(&json!({}), started);
    check(&phase("Recreating"), Some(pod), 1, &format!("Sync(\"{expect}\")"));
}

fn completed(at: &str, metadata: Value, ttl: Option<i32>) -> Value {
    let mut change = json!({ "metadata": { "labels": null }, "spec": {},
        "status": { "phase": "Completed", "completionTime": at } });
    merge(&mut change["metadata"], metadata);
    if let Some(ttl) = ttl {
        change["spec"] = json!({ "ttlSecondsAfterFinished": ttl });
    }
    change
}

const AT: &str = "1970-01-01T00:00:02Z";

/// A request that has ended at second 2, at second 10.
#[rstest]
#[case::kept(completed(AT, json!({}), None), "")]
#[case::over(completed(AT, json!({}), Some(8)), "Delete")]
#[case::not_yet(completed(AT, json!({}), Some(9)), "in 1s")]
#[case::active(completed(AT, json!({ "labels": { REQUEST_ACTIVE: "true" } }), Some(8)), "Deactivate")]
#[case::held(
    completed(AT, json!({ "labels": { REQUEST_ACTIVE: "" }, "finalizers": [REQUEST_UNREADY] }), None),
    "PutBack, Release, Deactivate")]
#[case::deleted(
    completed(AT, json!({ "deletionTimestamp": AT, "finalizers": [REQUEST_UNREADY] }), Some(8)), "PutBack, Release")]
fn a_request_that_has_ended(#[case] change: Value, #[case] expect: &str) {
    check(&change, Some(pod(&json!({}), 5)), 10, expect);
}

#[test]
fn the_finalizer_goes_without_a_pod() {
    let change = completed(AT, json!({ "finalizers": [REQUEST_UNREADY] }), None);
    check(&change, None, 10, "Release");
}

#[test]
fn a_request_that_is_deleted_lets_its_pod_go() {
    let change = json!({ "metadata": { "deletionTimestamp": AT, "finalizers": [REQUEST_UNREADY] },
        "status": { "phase": "Recreating" } });
    check(&change, Some(pod(&json!({}), 5)), 10, "PutBack, Release");
}
