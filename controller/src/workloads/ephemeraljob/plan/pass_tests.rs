//! Rows: the phases of a job, the pods that get its containers, and its end.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::pods::CachedPod;

const NOW: i64 = 1000;

fn job(spec: &Value, status: &Value, finalizers: &[&str]) -> Arc<EphemeralJob> {
    let mut object = json!({
        "metadata": { "name": "j", "namespace": "default", "uid": "u", "finalizers": finalizers },
        "spec": { "selector": {}, "template": { "ephemeralContainers": [{ "name": "debug" }] } },
        "status": status,
    });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A pod by a letter: `-` has no container of the job, `n` one without a state, `w` waits, `r` runs, `s` ended well, `f` failed, `e`
/// could not start; `o` has a container of that name from another job, `d` ended.
fn pod(number: usize, letter: char) -> Arc<CachedPod> {
    let state = match letter {
        'w' => json!({ "waiting": { "reason": "PodInitializing" } }),
        'r' => json!({ "running": {} }),
        's' => json!({ "terminated": { "exitCode": 0, "finishedAt": "1970-01-01T00:00:10Z" } }),
        'f' => json!({ "terminated": { "exitCode": 3, "finishedAt": "1970-01-01T00:00:10Z" } }),
        'e' => json!({ "waiting": { "reason": "RunContainerError" } }),
        _ => json!(null),
    };
    let owner = if letter == 'o' { "other" } else { "u" };
    let container = json!({ "name": "debug", "env": [{ "name": "KRUISE_EJOB_ID", "value": owner }] });
    let phase = if letter == 'd' { "Succeeded" } else { "Running" };
    let mut pod = json!({ "metadata": { "name": format!("p{number}"), "uid": format!("u{number}") }, "spec": {}, "status": { "phase": phase } });
    if !matches!(letter, '-' | 'd') {
        pod["spec"]["ephemeralContainers"] = json!([container]);
    }
    if !state.is_null() {
        pod["status"]["ephemeralContainerStatuses"] = json!([{ "name": "debug", "state": state }]);
    }
    Arc::new(CachedPod::from(
        serde_json::from_value::<crate::pods::pod::Pod>(pod).unwrap(),
    ))
}

fn observed(job: Arc<EphemeralJob>, letters: &str) -> Observed {
    Observed {
        job,
        pods: (1..)
            .zip(letters.chars())
            .map(|(number, letter)| pod(number, letter))
            .collect(),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

fn work(spec: &Value, letters: &str) -> Work {
    let status = json!({ "startTime": "1970-01-01T00:16:30Z" });
    match plan(&observed(job(spec, &status, &[FINALIZER]), letters)) {
        Plan::Work(work) => *work,
        other => panic!("{other:?}"),
    }
}

/// The phase, whether the job is over, and the reason of its last condition.
fn shown(status: &EphemeralJobStatus) -> String {
    let over = if status.completion_time.is_some() {
        " over"
    } else {
        ""
    };
    let reason = status
        .conditions
        .last()
        .and_then(|condition| condition.reason.clone());
    format!("{}{over} {}", status.phase, reason.unwrap_or_default())
}

/// A spec, the pods, and the phase that follows.
#[rstest]
#[case::new(json!({}), "---", "Unknown Initialized")]
#[case::without_a_state(json!({}), "nnn", "Unknown Initialized")]
#[case::waiting(json!({}), "www", "Waiting Initialized")]
#[case::running(json!({}), "srw", "Running Initialized")]
#[case::succeeded(json!({}), "sss", "Succeeded over JobSucceeded")]
#[case::failed(json!({}), "fff", "Failed over CreateFailed")]
#[case::failed_to_start(json!({}), "eee", "Failed over CreateFailed")]
#[case::some_of_both(json!({}), "ssf", "Unknown CreateFailed")]
#[case::two_of_three(json!({ "replicas": 2 }), "sss", "Succeeded over JobSucceeded")]
#[case::more_than_there_are(json!({ "replicas": 5 }), "sss", "Unknown Initialized")]
#[case::no_pods(json!({}), "", "Waiting MatchEmpty")]
#[case::only_ended_pods(json!({}), "d", "Waiting MatchEmpty")]
#[case::pods_of_another_job(json!({}), "o", "Waiting MatchEmpty")]
#[case::paused(json!({ "paused": true }), "---", "Paused Initialized")]
#[case::deadline(json!({ "activeDeadlineSeconds": 10 }), "rrr", "Failed over DeadlineExceeded")]
#[case::deadline_to_come(json!({ "activeDeadlineSeconds": 11 }), "rrr", "Running Initialized")]
#[case::deadline_while_paused(json!({ "activeDeadlineSeconds": 10, "paused": true }), "rrr", "Paused Initialized")]
#[case::no_containers(json!({ "template": { "ephemeralContainers": [] } }), "", "Error JobError")]
#[case::no_containers_for_a_pod(json!({ "template": { "ephemeralContainers": [] } }), "-", "Error JobError")]
fn phases(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    assert_eq!(shown(&work(&spec, letters).status), expect);
}

/// Parallelism, the pods, and those that get the containers.
#[rstest]
#[case::one_by_one(json!({}), "---", &["p1"])]
#[case::one_more_than_wait(json!({}), "w--", &["p2"])]
#[case::not_while_one_runs(json!({}), "r--", &[])]
#[case::two(json!({ "parallelism": 2 }), "r--", &["p2"])]
#[case::two_at_once(json!({ "parallelism": 2 }), "---", &["p1", "p2"])]
#[case::more_than_there_are(json!({ "parallelism": 9 }), "--", &["p1", "p2"])]
#[case::less_than_none(json!({ "parallelism": -1 }), "--", &[])]
#[case::of_the_first_two(json!({ "parallelism": 9, "replicas": 2 }), "---", &["p1", "p2"])]
#[case::less_than_no_pods(json!({ "replicas": -1 }), "--", &[])]
#[case::not_while_paused(json!({ "paused": true }), "--", &[])]
#[case::not_another_jobs(json!({}), "o-", &["p2"])]
#[case::not_when_it_is_over(json!({ "activeDeadlineSeconds": 1 }), "--", &[])]
fn pods_that_get_containers(#[case] spec: Value, #[case] letters: &str, #[case] expect: &[&str]) {
    let inject = work(&spec, letters).inject;
    let names: Vec<&str> = inject.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, expect);
}

/// Seconds to live, the second at which the job was over, and the next step.
#[rstest]
#[case::not_yet(json!(6), 996, Plan::Rest(Some(Duration::from_secs(2))))]
#[case::now(json!(6), 994, Plan::Remove)]
#[case::half_an_hour(json!(null), 999, Plan::Rest(Some(Duration::from_secs(1799))))]
fn jobs_that_are_over(#[case] ttl: Value, #[case] second: i64, #[case] expect: Plan) {
    let end = Timestamp::from_second(second).unwrap().to_string();
    let job = job(
        &json!({ "ttlSecondsAfterFinished": ttl }),
        &json!({ "completionTime": end }),
        &[FINALIZER],
    );
    assert_eq!(plan(&observed(job, "---")), expect);
}

#[rstest]
#[case::new(false, &[], Plan::Hold)]
#[case::going(true, &[FINALIZER], Plan::LetGo)]
#[case::gone_for_us(true, &["other"], Plan::Rest(None))]
fn held_and_let_go(#[case] goes: bool, #[case] finalizers: &[&str], #[case] expect: Plan) {
    let mut job = EphemeralJob::clone(&job(&json!({}), &json!({}), finalizers));
    let time = jiff::Timestamp::UNIX_EPOCH;
    job.metadata.deletion_timestamp =
        goes.then_some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
    assert_eq!(plan(&observed(Arc::new(job), "---")), expect);
}
