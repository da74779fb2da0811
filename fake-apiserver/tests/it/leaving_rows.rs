//! Rows of pods that are to go while something takes its time: what is done to a pod, and what is shown of it then.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Image;
use shared_json::{Value, json};

use crate::lives::{said, short};
use crate::support::{request, send, simulate};

const MERGE: &str = "application/strategic-merge-patch+json";
const POD: &str = "/api/v1/namespaces/default/pods/p";

/// A stubborn program does not care that it is asked to end; a prompt one does.
const STUBBORN: &str = "sleep 1000";
const PROMPT: &str = "trap exit TERM; while true; do sleep 1; done";

/// What is done to the pod.
#[derive(Clone)]
pub(crate) enum Step {
    /// So many seconds pass.
    Wait(u64),
    /// It is deleted with this grace period, or its own.
    Delete(Option<u64>),
    /// An object is patched.
    Patch(&'static str, Value),
}
use Step::{Delete, Patch, Wait};

/// What is shown of the pod after some steps, and what its kubelet has said by then. `before`: objects that are there first, by path.
pub(crate) fn play(spec: &Value, before: &[(&'static str, Value)], steps: &[Step]) -> (String, Vec<String>) {
    let (spec, before, steps) = (spec.clone(), before.to_vec(), steps.to_vec());
    let mut result = None;
    let slot = &mut result;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let images = cluster.images();
        images.set("missing:1", Image::missing("missing:1"));
        images.set("late:1", Image::remote("late:1", Duration::from_secs(100)));
        for (path, object) in &before {
            let (code, answer) = request(&cluster, "POST", path, object).await;
            assert_eq!(code, 201, "{answer}");
        }
        // What holds it lets its end be seen.
        let metadata = json!({"name": "p", "finalizers": ["example.com/hold"]});
        let pod = json!({"metadata": metadata, "spec": spec});
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(code, 201, "{answer}");
        for step in steps {
            match step {
                Wait(seconds) => cluster.run_for(Duration::from_secs(seconds)).await,
                Delete(None) => {
                    request(&cluster, "DELETE", POD, &Value::Null).await;
                }
                Delete(Some(grace)) => {
                    request(&cluster, "DELETE", POD, &json!({"gracePeriodSeconds": grace})).await;
                }
                Patch(path, patch) => {
                    let (code, answer) = send(&cluster, "PATCH", path, MERGE, &patch).await;
                    assert_eq!(code, 200, "{answer}");
                }
            }
        }
        let (_, pod) = request(&cluster, "GET", POD, &Value::Null).await;
        let (_, events) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        *slot = Some((short(&pod), said(&events)));
    });
    result.expect("a life")
}

#[track_caller]
fn check(spec: Value, steps: &[Step], expected: &str) {
    let (status, events) = play(&spec, &[], steps);
    assert_eq!(status, expected, "{spec} {events:#?}");
}

fn sh(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "busybox:1", "command": ["sh", "-c", script]})
}

fn with(mut container: Value, field: &str, value: Value) -> Value {
    container[field] = value;
    container
}

fn pod(containers: Value) -> Value {
    json!({"containers": containers})
}

const RUNS: &str = "Running ready a:running";
const KILLED: &str = "Failed PodFailed a:terminated(Error 137)";
const LOST: &str = "Failed PodFailed a:terminated(ContainerStatusUnknown 137)";

#[test]
fn less_time_than_before() {
    let stubborn = || pod(json!([sh("a", STUBBORN)]));
    check(stubborn(), &[Wait(5), Delete(None), Wait(25)], RUNS);
    check(stubborn(), &[Wait(5), Delete(None), Wait(33)], KILLED);
    check(
        stubborn(),
        &[Wait(5), Delete(None), Wait(5), Delete(Some(3)), Wait(2)],
        RUNS,
    );
    check(
        stubborn(),
        &[Wait(5), Delete(None), Wait(5), Delete(Some(3)), Wait(5)],
        KILLED,
    );
    check(
        stubborn(),
        &[Wait(5), Delete(None), Wait(5), Delete(Some(1)), Wait(3)],
        KILLED,
    );
    // Twice.
    let steps = [
        Wait(5),
        Delete(None),
        Wait(2),
        Delete(Some(20)),
        Wait(2),
        Delete(Some(4)),
        Wait(6),
    ];
    check(stubborn(), &steps, KILLED);
    // More than before it does not get; less begins anew.
    check(
        stubborn(),
        &[Wait(5), Delete(Some(5)), Wait(2), Delete(Some(60)), Wait(6)],
        KILLED,
    );
    let anew = |seconds: u64| [Wait(5), Delete(Some(10)), Wait(8), Delete(Some(9)), Wait(seconds)];
    check(stubborn(), &anew(7), RUNS);
    check(stubborn(), &anew(12), KILLED);
    // While a hook runs.
    let hooked = |command: Value, script: &str| {
        pod(json!([with(
            sh("a", script),
            "lifecycle",
            json!({"preStop": {"exec": {"command": command}}})
        )]))
    };
    let slow = || hooked(json!(["sleep", "20"]), PROMPT);
    check(slow(), &[Wait(5), Delete(None), Wait(15)], RUNS);
    let ended = "Succeeded PodCompleted a:terminated(Completed 0)";
    check(slow(), &[Wait(5), Delete(None), Wait(24)], ended);
    check(
        slow(),
        &[Wait(5), Delete(None), Wait(4), Delete(Some(2)), Wait(5)],
        ended,
    );
    check(
        hooked(json!(["sleep", "20"]), STUBBORN),
        &[Wait(5), Delete(None), Wait(4), Delete(Some(2)), Wait(8)],
        KILLED,
    );
}

#[test]
fn while_it_starts() {
    let image = |name: &str, image: &str| json!({"name": name, "image": image});
    let late = || pod(json!([image("a", "late:1")]));
    check(
        late(),
        &[Wait(5)],
        "Pending ContainersNotReady a:waiting(ContainerCreating)",
    );
    check(late(), &[Wait(5), Delete(None), Wait(3)], LOST);
    check(late(), &[Wait(5), Delete(Some(0)), Wait(3)], LOST);
    // One runs, another comes.
    let both = "Failed PodFailed a:terminated(Completed 0) b:terminated(ContainerStatusUnknown 137)";
    check(
        pod(json!([image("a", "nginx:1"), image("b", "late:1")])),
        &[Wait(5), Delete(None), Wait(4)],
        both,
    );
    // Waiting for its turn.
    check(
        pod(json!([image("a", "missing:1"), image("b", "late:1")])),
        &[Wait(5), Delete(None), Wait(4)],
        "Failed PodFailed a:terminated(ContainerStatusUnknown 137) b:terminated(ContainerStatusUnknown 137)",
    );
    let hooked = |script: &str| {
        with(
            sh("a", script),
            "lifecycle",
            json!({"postStart": {"exec": {"command": ["sleep", "100"]}}}),
        )
    };
    check(
        pod(json!([hooked(PROMPT)])),
        &[Wait(5), Delete(None), Wait(4)],
        "Succeeded PodCompleted a:terminated(Completed 0)",
    );
    check(
        pod(json!([hooked(STUBBORN)])),
        &[Wait(5), Delete(Some(3)), Wait(7)],
        KILLED,
    );
}

#[test]
fn what_never_ran() {
    let of = |first: Value, containers: Value| json!({"initContainers": first, "containers": containers});
    let missing = |name: &str| json!({"name": name, "image": "missing:1"});
    let steps = [Wait(5), Delete(Some(1)), Wait(5)];
    check(pod(json!([missing("a")])), &steps, LOST);
    // Regular containers that could not begin yet wait for good.
    let waits = "a:waiting(PodInitializing)";
    check(
        of(json!([sh("i", STUBBORN)]), json!([sh("a", PROMPT)])),
        &steps,
        &format!("Failed PodFailed i:terminated(Error 137) {waits}"),
    );
    check(
        of(json!([missing("i")]), json!([sh("a", PROMPT)])),
        &steps,
        &format!("Failed PodFailed i:terminated(ContainerStatusUnknown 137) {waits}"),
    );
    check(
        of(
            json!([sh("i", STUBBORN), sh("j", "true")]),
            json!([sh("a", PROMPT)]),
        ),
        &steps,
        &format!("Failed PodFailed i:terminated(Error 137) j:waiting(PodInitializing) {waits}"),
    );
    check(
        of(json!([sh("i", "true"), missing("j")]), json!([sh("a", PROMPT)])),
        &steps,
        &format!("Failed PodFailed i:terminated(Completed 0) j:waiting(ErrImagePull) {waits}"),
    );
    check(
        of(json!([sh("i", "true")]), json!([missing("a")])),
        &steps,
        "Failed PodFailed i:terminated(Completed 0) a:terminated(ContainerStatusUnknown 137)",
    );
    // Whoever ends it.
    let mut limited = pod(json!([missing("a")]));
    limited["activeDeadlineSeconds"] = json!(4);
    check(
        limited.clone(),
        &[Wait(8)],
        "Failed PodFailed DeadlineExceeded a:terminated(ContainerStatusUnknown 137)",
    );
    limited["initContainers"] = json!([sh("i", STUBBORN)]);
    limited["terminationGracePeriodSeconds"] = json!(1);
    check(
        limited,
        &[Wait(12)],
        &format!("Failed PodFailed DeadlineExceeded i:terminated(Error 137) {waits}"),
    );
}

#[test]
fn deadlines_that_change() {
    let of = |seconds: Value| {
        let mut spec = pod(json!([sh("a", PROMPT)]));
        if seconds.is_number() {
            spec["activeDeadlineSeconds"] = seconds;
        }
        spec
    };
    let set = |seconds: u64| Patch(POD, json!({"spec": {"activeDeadlineSeconds": seconds}}));
    let over = "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)";
    check(of(Value::Null), &[Wait(4), set(8), Wait(2)], RUNS);
    check(of(Value::Null), &[Wait(4), set(8), Wait(8)], over);
    check(of(json!(100)), &[Wait(4), set(8), Wait(2)], RUNS);
    check(of(json!(100)), &[Wait(4), set(8), Wait(8)], over);
    // It has been active since it began.
    check(of(json!(100)), &[Wait(20), set(8), Wait(4)], over);
}

#[test]
fn readiness_while_it_ends() {
    let probe = json!({"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 2});
    let probed = |hook: Value| {
        let container = sh(
            "a",
            "touch /tmp/ok; trap 'sleep 100' TERM; while true; do sleep 1; done",
        );
        pod(json!([with(
            with(container, "readinessProbe", probe.clone()),
            "lifecycle",
            hook
        )]))
    };
    let hook = |script: &str| json!({"preStop": {"exec": {"command": ["sh", "-c", script]}}});
    let unready = "Running ContainersNotReady a:running";
    check(probed(json!({})), &[Wait(5)], RUNS);
    check(probed(json!({})), &[Wait(5), Delete(None), Wait(10)], RUNS);
    check(probed(hook("sleep 12")), &[Wait(5), Delete(None), Wait(8)], RUNS);
    check(
        probed(hook("rm /tmp/ok; sleep 12")),
        &[Wait(5), Delete(None), Wait(8)],
        unready,
    );
    check(
        probed(hook("rm /tmp/ok")),
        &[Wait(5), Delete(None), Wait(8)],
        unready,
    );
    check(
        probed(hook("sleep 4; rm /tmp/ok; sleep 8")),
        &[Wait(5), Delete(None), Wait(3)],
        RUNS,
    );
    check(
        probed(hook("sleep 4; rm /tmp/ok; sleep 8")),
        &[Wait(5), Delete(None), Wait(9)],
        unready,
    );
    // Nobody asks whether it lives.
    let mut alive = probed(hook("rm /tmp/ok; sleep 12"));
    alive["containers"][0]["livenessProbe"] = probe.clone();
    let (status, events) = play(&alive, &[], &[Wait(5), Delete(None), Wait(10)]);
    assert_eq!(status, unready);
    assert!(
        !events.iter().any(|event| event.contains("Liveness")),
        "{events:#?}"
    );
}
