//! Rows of passes over a job.

use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1beta1::{ImagePullJob, NodeImage};
use crate::images::ImageReference;

const NOW: i64 = 1000;

fn job(spec: &Value, status: &Value) -> ImagePullJob {
    let mut job = json!({ "metadata": { "name": "j", "namespace": "d", "uid": "u" },
        "spec": { "image": "nginx:1", "completionPolicy": { "type": "Always" } }, "status": status });
    crate::test_admission::merge_patch(&mut job["spec"], spec);
    serde_json::from_value(job).unwrap()
}

/// A node by a letter: `S`ucceeded, `F`ailed, `P`ulling, `?` asked without an answer, `o` with an answer about an older version,
/// `-` not asked.
fn node(name: &str, state: char) -> Arc<NodeImage> {
    let owners = json!([{ "uid": "u" }]);
    let phase = match state {
        'S' | 'o' => "Succeeded",
        'F' => "Failed",
        _ => "Pulling",
    };
    let version = i64::from(state != 'o');
    let mut node = json!({ "metadata": { "name": name }, "spec": {}, "status": { "desired": 1 } });
    if state != '-' {
        node["spec"] = json!({ "images": { "nginx": { "tags": [{ "tag": "1", "version": 1, "ownerReferences": owners }] } } });
    }
    if !matches!(state, '-' | '?') {
        node["status"]["imageStatuses"] =
            json!({ "nginx": { "tags": [{ "tag": "1", "phase": phase, "version": version }] } });
    }
    Arc::new(serde_json::from_value(node).unwrap())
}

fn observed(states: &str, job: ImagePullJob) -> Observed {
    let nodes = states.chars().zip(["a", "b", "c"]);
    Observed {
        job: Arc::new(job),
        image: ImageReference::parse("nginx:1").unwrap(),
        nodes: nodes.map(|(state, name)| node(name, state)).collect(),
        secrets: Vec::new(),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

const PROGRESS: &str = "job is running, progress";

/// The states of the nodes a, b and c, changes of the spec; the status as desired/active/succeeded/failed, the message, the nodes that
/// are asked.
#[rstest]
#[case::nothing_said("---", json!({}), "3/0/0/0", "0.0%", "a")]
#[case::two_at_a_time("---", json!({ "parallelism": 2 }), "3/0/0/0", "0.0%", "a b")]
#[case::paused("---", json!({ "parallelism": 0 }), "3/0/0/0", "0.0%", "")]
#[case::one_pulls("P--", json!({ "parallelism": 1 }), "3/1/0/0", "0.0%", "")]
#[case::one_has_it("S--", json!({ "parallelism": 1 }), "3/0/1/0", "33.3%", "b")]
#[case::room_for_more("PS-", json!({ "parallelism": 3 }), "3/1/1/0", "33.3%", "c")]
#[case::a_number_as_text("SF-", json!({ "parallelism": "2" }), "3/0/1/1 [b]", "66.7%", "c")]
#[case::no_number("SF-", json!({ "parallelism": "50%" }), "3/0/1/1 [b]", "66.7%", "")]
#[case::all_are_over("SSF", json!({}), "3/0/2/1 [c] done", "job has completed", "")]
#[case::never_over("SSS", json!({ "completionPolicy": { "type": "Never" } }), "3/0/3/0", "100.0%", "")]
#[case::no_node("", json!({}), "0/0/0/0 done", "job has completed", "")]
#[case::no_node_and_never_over(
    "", json!({ "completionPolicy": { "type": "Never" } }), "0/0/0/0", "job is running, no progress", ""
)]
#[case::no_answer_yet("?", json!({}), "1/1/0/0", "0.0%", "")]
#[case::an_answer_about_an_older_version("o", json!({}), "1/1/0/0", "0.0%", "")]
#[case::too_late(
    "FP-", json!({ "completionPolicy": { "activeDeadlineSeconds": 40 } }),
    "3/0/0/3 [a b c] done", "job exceeds activeDeadlineSeconds", ""
)]
#[case::over_before_the_deadline_was_seen(
    "SSS", json!({ "completionPolicy": { "activeDeadlineSeconds": 40 } }), "3/0/3/0 done", "job has completed", ""
)]
#[case::in_time("FP-", json!({ "completionPolicy": { "activeDeadlineSeconds": 41 } }), "3/1/0/1 [a]", "33.3%", "")]
fn passes(
    #[case] states: &str,
    #[case] spec: Value,
    #[case] expect: &str,
    #[case] message: &str,
    #[case] asked: &str,
) {
    let start = Timestamp::from_second(NOW - 40).unwrap().to_string();
    let work = work(&observed(
        states,
        job(&spec, &json!({ "desired": 0, "startTime": start })),
    ));
    let status = &work.status;
    let mut shown = format!(
        "{}/{}/{}/{}",
        status.desired, status.active, status.succeeded, status.failed
    );
    if !status.failed_nodes.is_empty() {
        shown.push_str(&format!(" [{}]", status.failed_nodes.join(" ")));
    }
    if status.completion_time.is_some() {
        shown.push_str(" done");
    }
    let message = match message.ends_with('%') {
        true => format!("{PROGRESS} {message}"),
        false => message.to_owned(),
    };
    assert_eq!((shown.as_str(), &status.message), (expect, &message));
    assert_eq!(work.ask.join(" "), asked);
}

#[test]
fn a_job_begins_with_its_first_pass_and_looks_again_at_its_deadline() {
    let spec = json!({ "completionPolicy": { "activeDeadlineSeconds": 40 } });
    let work = work(&observed("---", job(&spec, &json!(null))));
    assert_eq!(work.status.start_time.unwrap().0.as_second(), NOW);
    assert_eq!(work.next.map(|next| next.as_secs()), Some(40));
}

#[test]
fn a_node_without_a_secret_is_asked_again() {
    let mut observed = observed("S--", job(&json!({ "parallelism": 2 }), &json!(null)));
    observed.secrets.push(crate::api::v1beta1::ReferenceObject {
        namespace: "n".to_owned(),
        name: "s".to_owned(),
        mode: "batch".to_owned(),
    });
    let work = work(&observed);
    assert_eq!((work.status.succeeded, work.ask.join(" ")), (1, "a b".to_owned()));
}

/// When the job ended, its time to live, and where it stands.
#[rstest]
#[case::runs(None, Some(12), Phase::Running)]
#[case::stays(Some(NOW - 100), None, Phase::Over)]
#[case::waits(Some(NOW - 2), Some(12), Phase::OverFor(std::time::Duration::from_secs(10)))]
#[case::is_due(Some(NOW - 12), Some(12), Phase::OverFor(std::time::Duration::ZERO))]
fn phases(#[case] end: Option<i64>, #[case] ttl: Option<i32>, #[case] expect: Phase) {
    let end = end.map(|end| Timestamp::from_second(end).unwrap().to_string());
    let spec = json!({ "completionPolicy": { "ttlSecondsAfterFinished": ttl } });
    let job = job(&spec, &json!({ "desired": 0, "completionTime": end }));
    assert_eq!(phase(&job, Timestamp::from_second(NOW).unwrap()), expect);
}
