//! Rows: the pods that a pass makes and deletes, and the status of the job.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::workloads::broadcastjob::plan::Done;
use crate::workloads::broadcastjob::plan::test_world::{NOW, job, observed, outcome, shown, status, work};

fn parallel(number: Value) -> Value {
    json!({ "parallelism": number })
}

fn on_failure(policy: &str) -> Value {
    json!({ "failurePolicy": { "type": policy } })
}

fn restarts(policy: &str, limit: i32) -> Value {
    json!({ "failurePolicy": { "type": policy, "restartLimit": limit } })
}

fn selecting() -> Value {
    json!({ "template": { "spec": { "nodeSelector": { "sel": "yes" } } }, "completionPolicy": { "type": "Never" } })
}

fn asking(cpu: &str) -> Value {
    json!({ "template": { "spec": { "containers": [{ "resources": { "requests": { "cpu": cpu } } }] } } })
}

const ONE_FAILED: &str = "!failed pod is found: failure policy is FailurePolicyTypeFailFast and failed pod is found: \
                          0 pods succeeded, 1 pods failed";
const TWO_FAILED: &str = "!failed pod is found: failure policy is FailurePolicyTypeFailFast and failed pod is found: \
                          0 pods succeeded, 2 pods failed";
const TOO_MANY: &str = "!TooManyActivePods: Number of active pods exceed parallelism limit";

/// A spec, the nodes, the actions, and the status then.
#[rstest]
#[case::row_1(json!({}), "- -", "+n1 +n2".into(), "running 2 2 0 0")]
#[case::row_2(
    json!({}), "S S", "!JobComplete: Job default/j is completed, 2 pods succeeded, 0 pods failed".into(), "completed 2 0 2 0"
)]
#[case::row_3(parallel(json!(1)), "- -", "+n1".into(), "running 2 1 0 0")]
#[case::row_3_while_it_runs(parallel(json!(1)), "R -", String::new(), "running 2 1 0 0")]
#[case::row_3_then(parallel(json!(1)), "S -", "+n2".into(), "running 2 1 1 0")]
#[case::row_4(parallel(json!("50%")), "- - -", "+n1 +n2".into(), "running 3 2 0 0")]
#[case::row_5(parallel(json!("34%")), "- -", "+n1".into(), "running 2 1 0 0")]
#[case::a_text_is_a_percentage(parallel(json!("5")), "- -", "+n1".into(), "running 2 1 0 0")]
#[case::row_6(parallel(json!(0)), "- -", String::new(), "running 2 0 0 0")]
#[case::row_7(parallel(json!(-1)), "- -", TOO_MANY.into(), "running 2 0 0 0")]
#[case::row_8(parallel(json!(1)), "R R -", TOO_MANY.into(), "running 3 2 0 0")]
#[case::row_8_without_a_node_to_fill(parallel(json!(1)), "R R", String::new(), "running 2 2 0 0")]
#[case::no_number(
    parallel(json!("x")), "- -",
    "failure: invalid value for IntOrString: invalid value \"x\": strconv.Atoi: parsing \"x\": invalid syntax".into(),
    "running 2 0 0 0"
)]
#[case::row_35(
    json!({ "template": { "spec": { "containers": [{ "name": "main", "image": "v2" }] } } }), "R -", "+n2".into(), "running 2 2 0 0"
)]
#[case::row_11(json!({}), "S:- S:-", String::new(), "running 0 0 0 0")]
#[case::row_12(json!({}), "- S:-", "+n1".into(), "running 1 1 0 0")]
#[case::row_13(json!({}), "- P:-", "+n1 +n2".into(), "running 2 2 0 0")]
#[case::row_14(json!({}), "- C:-", "+n1".into(), "running 1 1 0 0")]
#[case::row_15(asking("500m"), "- -", "+n1 +n2".into(), "running 2 2 0 0")]
#[case::row_16(asking("2"), "- -", String::new(), "running 0 0 0 0")]
#[case::row_17(json!({}), "F R", format!("{ONE_FAILED} -n2a {TWO_FAILED}"), "failed 2 0 0 2")]
#[case::row_18(parallel(json!(1)), "F -", format!("{ONE_FAILED} {ONE_FAILED}"), "failed 2 0 0 1")]
#[case::row_19(
    on_failure("Continue"), "F S",
    "!JobComplete: Job default/j is completed, 1 pods succeeded, 1 pods failed".into(), "completed 2 0 1 1"
)]
#[case::an_unknown_policy_is_none(on_failure("Bogus"), "F -", "+n2".into(), "running 2 1 0 1")]
#[case::row_20(on_failure("Pause"), "F -", "!Paused: job is paused, due to failed pod".into(), "paused 2 0 0 1")]
#[case::row_21(restarts("FailFast", 2), "2 R", String::new(), "running 2 2 0 0")]
#[case::row_22(restarts("FailFast", 2), "3 R", format!("{ONE_FAILED} -n2a {TWO_FAILED}"), "failed 2 0 0 2")]
#[case::row_22_alone(restarts("FailFast", 2), "3", format!("{ONE_FAILED} {ONE_FAILED}"), "failed 1 0 0 1")]
#[case::row_23(restarts("Continue", 3), "B", String::new(), "running 1 0 0 1")]
#[case::row_23_at_the_limit(restarts("Continue", 4), "B", String::new(), "running 1 1 0 0")]
#[case::row_24(restarts("FailFast", 5), "F", format!("{ONE_FAILED} {ONE_FAILED}"), "failed 1 0 0 1")]
#[case::over_the_limit_is_not_over(restarts("Continue", 2), "3 S", String::new(), "running 2 0 1 1")]
#[case::row_25(json!({ "paused": true }), "- -", String::new(), "paused 2 0 0 0")]
#[case::row_27(json!({ "paused": true }), "R S", String::new(), "paused 2 1 1 0")]
#[case::row_27_no_end(json!({ "paused": true }), "S S", String::new(), "paused 2 0 2 0")]
#[case::row_31(json!({ "completionPolicy": { "type": "Never" } }), "S S -", "+n3".into(), "running 3 1 2 0")]
#[case::row_31_never_over(json!({ "completionPolicy": { "type": "Never" } }), "S S", String::new(), "running 2 0 2 0")]
#[case::row_32(selecting(), "O:S L:S", "-n1a".into(), "running 1 -1 2 1")]
#[case::one_that_ended_makes_no_room(parallel(json!(1)), "C:S R -", "-n1a".into(), "running 2 0 1 1")]
#[case::one_that_runs_makes_room(parallel(json!(1)), "C:R -", "-n1a +n2".into(), "running 1 1 0 1")]
#[case::row_32_then(selecting(), "- L:S", String::new(), "running 1 0 1 0")]
#[case::row_34(json!({}), "T R", String::new(), "running 2 1 0 0")]
#[case::row_34_gone(json!({}), "- R", "+n1".into(), "running 2 2 0 0")]
#[case::row_34_over(
    json!({}), "T S", "!JobComplete: Job default/j is completed, 1 pods succeeded, 0 pods failed".into(), "completed 2 0 1 0"
)]
#[case::a_pod_that_does_not_fit_any_more(json!({}), "R S:R", "-n2a".into(), "running 1 1 0 1")]
#[case::one_that_goes_is_left_alone(json!({}), "R S:T", String::new(), "running 1 1 0 0")]
#[case::two_on_a_node(
    json!({}), "RS",
    "!DuplicatePodCreatedOnSameNode: Duplicated pod j-n1b found on same node n1 \
     !JobComplete: Job default/j is completed, 1 pods succeeded, 0 pods failed".into(),
    "completed 1 1 1 0"
)]
fn pods(#[case] spec: Value, #[case] words: &str, #[case] expect: String, #[case] expect_status: &str) {
    let work = work(&spec, &json!({}), words);
    assert_eq!(
        (shown(&work), status(&work)),
        (expect, expect_status.to_owned()),
        "{spec} {words}"
    );
}

/// A spec, the phase before, the nodes, the actions, and the status then.
#[rstest]
#[case::row_26(json!({}), "paused", "- -", "!Continue: continue to process job +n1 +n2", "running 2 2 0 0")]
#[case::paused_again_by_its_policy(
    on_failure("Pause"),
    "paused",
    "F -",
    "!Continue: continue to process job !Paused: job is paused, due to failed pod",
    "paused 2 0 0 1"
)]
#[case::failed_for_good(json!({ "completionPolicy": { "type": "Never" } }), "failed", "F -", "", "failed 2 0 0 1")]
fn phases(
    #[case] spec: Value,
    #[case] phase: &str,
    #[case] words: &str,
    #[case] expect: &str,
    #[case] expect_status: &str,
) {
    let work = work(&spec, &json!({ "phase": phase }), words);
    assert_eq!(
        (shown(&work).as_str(), status(&work).as_str()),
        (expect, expect_status)
    );
}

/// A deadline in seconds after the beginning, ten seconds ago: the actions, and the wait until it.
#[rstest]
#[case::row_28(
    10,
    "Always",
    "R R",
    "-n1a -n2a !DeadlineExceeded: Job default/j was active longer than specified deadline: \
                                    0 pods succeeded, 2 pods failed",
    None
)]
#[case::not_yet(12, "Always", "R R", "", Some(2))]
#[case::of_an_unknown_type(12, "Bogus", "R R", "", Some(2))]
#[case::none_without_an_end(5, "Never", "R R", "", None)]
fn deadlines(
    #[case] seconds: i64,
    #[case] kind: &str,
    #[case] words: &str,
    #[case] expect: &str,
    #[case] wait_s: Option<u64>,
) {
    let spec = json!({ "completionPolicy": { "type": kind, "activeDeadlineSeconds": seconds } });
    let work = work(&spec, &json!({}), words);
    assert_eq!(
        (shown(&work).as_str(), work.requeue.map(|wait| wait.as_secs())),
        (expect, wait_s)
    );
}

/// While a job is paused its deadline does not count.
#[test]
fn a_paused_job_outlives_its_deadline() {
    let spec =
        json!({ "paused": true, "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 1 } });
    let work = work(&spec, &json!({}), "R R");
    assert_eq!(
        (shown(&work).as_str(), status(&work).as_str()),
        ("", "paused 2 2 0 0")
    );
}

/// Seconds to live, the second at which the job was over, and the next step.
#[rstest]
#[case::row_29_not_yet(json!(6), 996, Some(Plan::Rest(Some(Duration::from_secs(2)))))]
#[case::row_29(json!(6), 994, Some(Plan::Remove))]
#[case::row_30(json!(0), NOW, Some(Plan::Remove))]
#[case::less_than_nothing(json!(-5), NOW, Some(Plan::Remove))]
#[case::row_33_for_good(json!(null), 0, Some(Plan::Rest(None)))]
fn jobs_that_are_over(#[case] ttl: Value, #[case] second: i64, #[case] expect: Option<Plan>) {
    let spec = json!({ "completionPolicy": { "ttlSecondsAfterFinished": ttl } });
    let end = jiff::Timestamp::from_second(second).unwrap().to_string();
    let status = json!({ "completionTime": end, "conditions": [{ "type": "Complete", "status": "True" }] });
    // A node came later.
    assert_eq!(Some(plan(&observed(&spec, &status, "S -"))), expect);
}

#[test]
fn a_job_that_never_ends_is_never_over() {
    let spec = json!({ "completionPolicy": { "type": "Never", "ttlSecondsAfterFinished": 0 } });
    let status = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    assert!(matches!(plan(&observed(&spec, &status, "S -")), Plan::Work(_)));
}

/// How a job is over: its condition, and when it is looked at again.
#[rstest]
#[case::complete(json!({}), "S", "Complete Complete: Job completed, 1 pods succeeded, 0 pods failed", None)]
#[case::failed(
    json!({ "completionPolicy": { "ttlSecondsAfterFinished": 5 } }), "F",
    "Failed Failed: failure policy is FailurePolicyTypeFailFast and failed pod is found", Some(6)
)]
fn conditions(#[case] spec: Value, #[case] words: &str, #[case] expect: &str, #[case] wait_s: Option<u64>) {
    let work = work(&spec, &json!({}), words);
    let status = outcome(&work).status;
    let [condition] = &status.conditions[..] else {
        panic!("{:?}", status.conditions);
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let found = format!(
        "{} {}: {}",
        condition.kind,
        text(&condition.reason),
        text(&condition.message)
    );
    assert_eq!(
        (found.as_str(), work.requeue.map(|wait| wait.as_secs())),
        (expect, wait_s)
    );
    let now = policy::whole_seconds(jiff::Timestamp::from_second(NOW).unwrap());
    let times = [
        &condition.last_probe_time,
        &condition.last_transition_time,
        &status.completion_time,
    ];
    assert_eq!(times, [&Some(now.clone()), &Some(now.clone()), &Some(now)]);
    assert_eq!(condition.status, "True");
}

/// A new job begins now; a job that is being deleted makes no pods.
#[rstest]
#[case::new(json!({ "status": null }), "+n1", Some(NOW))]
#[case::going(json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:16:40Z" } }), "", Some(990))]
fn beginnings(#[case] changes: Value, #[case] expect: &str, #[case] start: Option<i64>) {
    let mut observed = observed(&json!({}), &json!({}), "-");
    let mut object = serde_json::to_value(observed.job.as_ref()).unwrap();
    crate::kit::json::merge(&mut object, changes);
    observed.job = std::sync::Arc::new(serde_json::from_value(object).unwrap());
    let Plan::Work(work) = plan(&observed) else {
        panic!("the job is over");
    };
    let began = work.status.start_time.as_ref().map(|time| time.0.as_second());
    assert_eq!((shown(&work).as_str(), began), (expect, start));
}

/// Row 10: of seven pods three were tried, and one of them failed; a deletion that failed does not count.
#[rstest]
#[case::creations("- - - - - - -", 0, 3, "running 7 3 0 0")]
#[case::deletions("S:R S:R R", 1, 0, "running 1 2 0 1")]
fn counts_of_what_was_done(
    #[case] words: &str,
    #[case] deleted: usize,
    #[case] tried: usize,
    #[case] expect: &str,
) {
    let work = work(&json!({}), &json!({}), words);
    let now = jiff::Timestamp::from_second(NOW).unwrap();
    let status = work
        .outcome(&job(&json!({}), &json!({})), Done { deleted, tried }, now)
        .status;
    let counts =
        [status.desired, status.active, status.succeeded, status.failed].map(|count| count.to_string());
    assert_eq!(format!("{} {}", status.phase, counts.join(" ")), expect);
}
