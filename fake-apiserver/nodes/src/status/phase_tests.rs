//! Phases and readiness of pods by the states of their containers, a row each.

use rstest::rstest;
use shared_json::{Value, json};

use super::super::record::{ContainerRecord, Ended, Instance};
use super::*;
use crate::status::{condition_of, status};

/// One container in short: `a -` has never run, `a run` runs and is not ready, `a up` is ready, `a 3` has ended with 3, `a 3 wait` is
/// to run again and waits; `i…` is an init container, `s…` a sidecar.
fn container(short: &str) -> ContainerRecord {
    let mut words = short.split(' ');
    let (name, state) = (words.next().unwrap(), words.next().unwrap());
    let kind = match name.chars().next() {
        Some('i') => Kind::Init,
        Some('s') => Kind::Sidecar,
        _ => Kind::Regular,
    };
    let mut record = ContainerRecord::new(&json!({"name": name}), kind);
    let mut instance = Instance::default();
    if let Ok(code) = state.parse() {
        instance.ended = Some(Box::new(Ended {
            at: String::new(),
            code,
            reason: String::new(),
            message: String::new(),
        }));
    }
    record.current = (state != "-").then_some(instance);
    record.ready = state == "up";
    record.started = state == "up" || (kind == Kind::Regular && state == "run");
    record.blocked = words
        .next()
        .map(|_| ("CrashLoopBackOff".to_owned(), String::new()));
    record
}

fn record(containers: &[&str]) -> PodRecord {
    let mut record = PodRecord::new(&json!({}), "".into(), "".into(), "".into());
    record.sandbox = true;
    record.containers = containers.iter().map(|short| container(short)).collect();
    record
}

#[rstest]
#[case::nothing_yet("Always", &["a -"], "Pending")]
#[case::all_run("Always", &["a run", "b run"], "Running")]
#[case::one_has_not_begun("Always", &["a run", "b -"], "Pending")]
#[case::all_succeeded_and_begin_again("Always", &["a 0", "b 0"], "Running")]
#[case::all_failed_and_begin_again("Always", &["a 1", "b 1"], "Running")]
#[case::one_succeeded_and_begins_again("Always", &["a run", "b 0"], "Running")]
#[case::one_failed_and_begins_again("Always", &["a run", "b 1"], "Running")]
#[case::one_waits_to_begin_again("Always", &["a run", "b 1 wait"], "Running")]
#[case::the_only_one_waits_to_begin_again("Always", &["a 1 wait"], "Running")]
#[case::all_succeeded("OnFailure", &["a 0", "b 0"], "Succeeded")]
#[case::all_failed_on_failure("OnFailure", &["a 1", "b 1"], "Running")]
#[case::one_failed_on_failure("OnFailure", &["a 0", "b 1"], "Running")]
#[case::one_runs_on_failure("OnFailure", &["a run", "b 0"], "Running")]
#[case::one_waits_on_failure("OnFailure", &["a 1 wait", "b 0"], "Running")]
#[case::one_has_not_begun_on_failure("OnFailure", &["a 0", "b -"], "Pending")]
#[case::all_succeeded_once("Never", &["a 0", "b 0"], "Succeeded")]
#[case::all_failed_once("Never", &["a 1", "b 2"], "Failed")]
#[case::one_failed_once("Never", &["a 0", "b 2"], "Failed")]
#[case::one_runs_once("Never", &["a 1", "b run"], "Running")]
#[case::one_has_not_begun_once("Never", &["a 1", "b -"], "Pending")]
#[case::init_waits("Always", &["i -", "a -"], "Pending")]
#[case::init_runs("Always", &["i run", "a -"], "Pending")]
#[case::init_succeeded("Always", &["i 0", "a -"], "Pending")]
#[case::init_failed("Always", &["i 1", "a -"], "Pending")]
#[case::init_waits_to_begin_again("Always", &["i 1 wait", "a -"], "Pending")]
#[case::init_failed_for_good("Never", &["i 1", "a -"], "Failed")]
#[case::init_failed_on_failure("OnFailure", &["i 1", "a -"], "Pending")]
#[case::second_init_failed_for_good("Never", &["i 0", "i2 1", "a -"], "Failed")]
#[case::init_then_runs("Always", &["i 0", "a run"], "Running")]
#[case::init_then_succeeded("Never", &["i 0", "a 0"], "Succeeded")]
#[case::init_then_failed("Never", &["i 0", "a 1"], "Failed")]
#[case::sidecar_begins("Always", &["s run", "a -"], "Pending")]
#[case::sidecar_has_begun("Always", &["s up", "a -"], "Pending")]
#[case::sidecar_beside("Always", &["s up", "a run"], "Running")]
#[case::sidecar_ended_beside("Never", &["s 1", "a run"], "Running")]
#[case::sidecar_waits_beside("Never", &["s 1 wait", "a run"], "Running")]
#[case::sidecar_runs_on("Never", &["s up", "a 0"], "Succeeded")]
#[case::sidecar_runs_on_after_a_failure("Never", &["s up", "a 1"], "Failed")]
#[case::sidecar_failed_at_last("Never", &["s 137", "a 0"], "Succeeded")]
#[case::sidecar_does_not_end_what_begins_again("Always", &["s 1", "a 0"], "Running")]
fn phases(#[case] policy: &str, #[case] containers: &[&str], #[case] expected: &str) {
    let pod = json!({"spec": {"restartPolicy": policy}});
    assert_eq!(phase(&record(containers), &pod), expected);
}

/// Conditions `NAME=STATUS` that the pod has, gates that it names, and its condition `Ready`: its reason and message.
#[rstest]
#[case::none(&["a up"], &[], &[], "")]
#[case::open(&["a up"], &["x"], &["x=True"], "")]
#[case::all_open(&["a up"], &["x", "y"], &["x=True", "y=True"], "")]
#[case::closed(&["a up"], &["x"], &["x=False"], "ReadinessGatesNotReady: the status of pod readiness gate \"x\" is not \"True\", but False")]
#[case::unknown(&["a up"], &["x"], &["x=Unknown"], "ReadinessGatesNotReady: the status of pod readiness gate \"x\" is not \"True\", but Unknown")]
#[case::absent(&["a up"], &["x"], &[], "ReadinessGatesNotReady: corresponding condition of pod readiness gate \"x\" does not exist.")]
#[case::another_s(&["a up"], &["x"], &["y=True"], "ReadinessGatesNotReady: corresponding condition of pod readiness gate \"x\" does not exist.")]
#[case::one_of_two(&["a up"], &["x", "y"], &["x=True", "y=False"], "ReadinessGatesNotReady: the status of pod readiness gate \"y\" is not \"True\", but False")]
#[case::both(&["a up"], &["x", "y"], &["x=False"], "ReadinessGatesNotReady: the status of pod readiness gate \"x\" is not \"True\", but False, \
    corresponding condition of pod readiness gate \"y\" does not exist.")]
#[case::in_the_order_of_the_gates(&["a up"], &["y", "x"], &[], "ReadinessGatesNotReady: corresponding condition of pod readiness gate \"y\" does not \
    exist., corresponding condition of pod readiness gate \"x\" does not exist.")]
#[case::false_without_a_gate(&["a up"], &[], &["x=False"], "")]
#[case::containers_first(&["a run"], &["x"], &[], "ContainersNotReady: containers with unready status: [a]")]
#[case::containers_before_open_gates(&["a run"], &["x"], &["x=True"], "ContainersNotReady: containers with unready status: [a]")]
#[case::one_container(&["a up", "b run"], &["x"], &["x=True"], "ContainersNotReady: containers with unready status: [b]")]
#[case::two_containers(&["a run", "b run"], &[], &[], "ContainersNotReady: containers with unready status: [a b]")]
#[case::not_begun(&["a up", "b -"], &[], &[], "ContainersNotReady: containers with unready status: [b]")]
#[case::sidecar(&["s run", "a up"], &[], &[], "ContainersNotReady: containers with unready status: [s]")]
#[case::ready_sidecar(&["s up", "a up"], &["x"], &["x=True"], "")]
#[case::init_does_not_count(&["i 0", "a up"], &["x"], &["x=True"], "")]
#[case::succeeded(&["a 0"], &["x"], &["x=True"], "PodCompleted: ")]
#[case::failed(&["a 1"], &["x"], &["x=True"], "PodFailed: ")]
fn readiness(
    #[case] containers: &[&str],
    #[case] gates: &[&str],
    #[case] conditions: &[&str],
    #[case] expected: &str,
) {
    let gates: Vec<Value> = gates.iter().map(|kind| json!({"conditionType": kind})).collect();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|short| {
            let (kind, status) = short.split_once('=').unwrap();
            json!({"type": kind, "status": status})
        })
        .collect();
    let pod = json!({
        "spec": {"restartPolicy": "Never", "readinessGates": gates}, "status": {"conditions": conditions},
    });
    let mut shown = pod.clone();
    shown["status"] = Value::Object(status(&record(containers), &pod, "now"));
    let ready = condition_of(&shown, "Ready").unwrap();
    let told = |field: &str| ready.get(field).and_then(Value::as_str).unwrap_or_default();
    let found = if told("status") == "True" {
        String::new()
    } else {
        format!("{}: {}", told("reason"), told("message"))
    };
    assert_eq!(found, expected);
}
