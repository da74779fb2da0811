//! Rows: the steps for pods of jobs.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A pod of containers by a word each: name, `:`, exit code or `r` for one that runs. Names say how a container is used: `m` a main one,
/// `s` a sidecar, `i` a sidecar whose exit code is ignored, `v` one that an image ends.
fn pod(policy: &str, phase: &str, words: &str) -> Value {
    let (mut containers, mut statuses) = (Vec::new(), Vec::new());
    for word in words.split_whitespace() {
        let (name, state) = word.split_once(':').unwrap();
        let variables: &[(&str, &str)] = match &name[..1] {
            "s" => &[("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "true")],
            "i" => &[
                ("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "true"),
                ("KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", "true"),
            ],
            "v" => &[("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", "exit:1")],
            _ => &[],
        };
        let env: Vec<Value> = variables
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        containers.push(json!({ "name": name, "image": "app:1", "env": env }));
        let state = match state {
            "r" => json!({ "running": {} }),
            code => json!({ "terminated": { "exitCode": code.parse::<i32>().unwrap() } }),
        };
        statuses.push(json!({ "name": name, "state": state }));
    }
    json!({ "metadata": { "name": "a" }, "spec": { "restartPolicy": policy, "containers": containers },
        "status": { "phase": phase, "containerStatuses": statuses } })
}

fn shown(steps: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step::Images(images) => {
            let images: Vec<String> = images
                .iter()
                .map(|(name, image)| format!("{name}={image}"))
                .collect();
            images.join(",")
        }
        Step::End(phase) => (*phase).to_owned(),
        Step::Request(names) => format!("[{}]", names.join(" ")),
    };
    steps.iter().map(one).collect::<Vec<_>>().join(" then ")
}

fn check(pod: Value, is_virtual: bool, is_requested: bool, expect: &str) {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    assert_eq!(shown(&plan(&pod, is_virtual, is_requested)), expect);
}

/// The restart policy, the phase, the containers, and the steps. The first seven are the rows of the specification.
#[rstest]
#[case::row_1("Never", "Running", "m:0 s:r", "[s]")]
#[case::row_2("Never", "Running", "m:1 s:r", "[s]")]
#[case::row_3("OnFailure", "Running", "m:1 s:r", "")]
#[case::row_4("OnFailure", "Running", "m:0 s:r", "[s]")]
#[case::row_5("Always", "Running", "m:0 s:r", "")]
#[case::row_6("Never", "Running", "m:0 i:r", "Succeeded then [i]")]
#[case::row_7("Never", "Running", "m:1 i:r", "Failed then [i]")]
#[case::main_runs("Never", "Running", "m:r s:r", "")]
#[case::one_main_runs("Never", "Running", "m:0 m2:r s:r", "")]
#[case::pending("Never", "Pending", "m:0 s:r", "")]
#[case::no_sidecar("Never", "Running", "m:0", "")]
#[case::sidecar_has_ended("Never", "Running", "m:0 s:0", "")]
#[case::two_sidecars("Never", "Running", "m:0 s:r s2:r s3:0", "[s s2]")]
#[case::those_that_are_ignored_wait("Never", "Running", "m:0 s:r i:r", "[s]")]
#[case::those_that_are_ignored_are_left("Never", "Running", "m:0 s:0 i:r", "Succeeded then [i]")]
#[case::has_its_phase("Never", "Failed", "m:1 i:r", "[i]")]
#[case::by_image_off_virtual_nodes("Never", "Running", "m:0 v:r", "")]
fn on_a_node(#[case] policy: &str, #[case] phase: &str, #[case] words: &str, #[case] expect: &str) {
    check(pod(policy, phase, words), false, false, expect);
}

#[rstest]
#[case::by_image("m:0 v:r", "v=exit:1")]
#[case::without_an_image("m:0 s:r", "")]
#[case::both("m:0 v:r s:r", "v=exit:1")]
#[case::main_runs("m:r v:r", "")]
fn on_a_virtual_node(#[case] words: &str, #[case] expect: &str) {
    check(pod("Never", "Running", words), true, false, expect);
}

#[test]
fn an_image_that_is_there_is_not_written_again() {
    let mut pod = pod("Never", "Running", "m:0 v:r");
    pod["spec"]["containers"][1]["image"] = json!("exit:1");
    check(pod, true, false, "");
}

/// There is a request already.
#[rstest]
#[case("m:0 s:r", "")]
#[case("m:0 s:0 i:r", "Succeeded")]
fn with_a_request(#[case] words: &str, #[case] expect: &str) {
    check(pod("Never", "Running", words), false, true, expect);
}

#[test]
fn a_container_without_a_status_has_not_ended() {
    let mut pod = pod("Never", "Running", "m:0 s:r");
    pod["status"]["containerStatuses"].as_array_mut().unwrap().pop();
    check(pod, false, false, "");
}

#[test]
fn a_pod_that_goes_is_left_alone() {
    let mut pod = pod("Never", "Running", "m:0 s:r");
    pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    check(pod, false, false, "");
}
