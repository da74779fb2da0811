//! Rows of pods that are deleted while some work takes its time: the actions on a pod, and its state then.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Image;
use shared_json::{Value, json};

use crate::lives::{said, short};
use crate::support::{request, send, sh, simulate};

const MERGE: &str = "application/strategic-merge-patch+json";
const POD: &str = "/api/v1/namespaces/default/pods/p";

/// A stubborn program does not care that it is asked to end; a prompt one does.
const STUBBORN: &str = "sleep 1000";
const PROMPT: &str = "trap exit TERM; while true; do sleep 1; done";

/// The actions on the pod.
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

/// The pod's state after some steps, and the kubelet's events by then. `before`: objects that are there first, by path.
pub(crate) fn play(spec: &Value, before: &[(&'static str, Value)], steps: &[Step]) -> (String, Vec<String>) {
    let (spec, before, steps) = (spec.clone(), before.to_vec(), steps.to_vec());
    let mut result = None;
    let slot = &mut result;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let images = cluster.images();
        images.set("missing:1", Image::missing("missing:1"));
        images.set("slow:1", Image::remote("slow:1", Duration::from_secs(10)));
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

/// A node ends a stop that it has begun: a client that deletes a pod again with less time changes nothing.
#[test]
fn less_time_than_before() {
    let stubborn = || pod(json!([sh("a", STUBBORN)]));
    check(stubborn(), &[Wait(5), Delete(None), Wait(25)], RUNS);
    check(stubborn(), &[Wait(5), Delete(None), Wait(33)], KILLED);
    for less in [0, 1, 3, 20] {
        let again = |seconds| [Wait(5), Delete(None), Wait(5), Delete(Some(less)), Wait(seconds)];
        check(stubborn(), &again(20), RUNS);
        check(stubborn(), &again(28), KILLED);
    }
    // Twice.
    let steps = |seconds| {
        [
            Wait(5),
            Delete(Some(12)),
            Wait(2),
            Delete(Some(8)),
            Wait(2),
            Delete(Some(4)),
            Wait(seconds),
        ]
    };
    check(stubborn(), &steps(6), RUNS);
    check(stubborn(), &steps(10), KILLED);
    // Nor does it get more than before.
    check(
        stubborn(),
        &[Wait(5), Delete(Some(5)), Wait(2), Delete(Some(60)), Wait(6)],
        KILLED,
    );
    // What counts is what is said before its node begins: here, while it gets an image.
    let late = || pod(json!([with(sh("a", STUBBORN), "image", json!("slow:1"))]));
    check(
        late(),
        &[Wait(5), Delete(None), Wait(1), Delete(Some(2)), Wait(12)],
        KILLED,
    );
    check(late(), &[Wait(5), Delete(None), Wait(13)], RUNS);
}

/// Hooks run to their end or until the time of the first deletion is over, whatever is said later; and only once.
#[test]
fn hooks_and_less_time() {
    let hooked = |hook: Value, script: &str| {
        pod(json!([with(
            sh("a", script),
            "lifecycle",
            json!({"preStop": hook})
        )]))
    };
    let slow = |script: &str| hooked(json!({"exec": {"command": ["sleep", "20"]}}), script);
    let ended = "Succeeded PodCompleted a:terminated(Completed 0)";
    check(slow(PROMPT), &[Wait(5), Delete(None), Wait(15)], RUNS);
    check(slow(PROMPT), &[Wait(5), Delete(None), Wait(24)], ended);
    let again = |less: u64, seconds: u64| [Wait(5), Delete(None), Wait(4), Delete(Some(less)), Wait(seconds)];
    for less in [0, 2, 10] {
        check(slow(PROMPT), &again(less, 12), RUNS);
        check(slow(PROMPT), &again(less, 20), ended);
        check(slow(STUBBORN), &again(less, 22), RUNS);
        check(slow(STUBBORN), &again(less, 30), KILLED);
    }
    let sleeps = || hooked(json!({"sleep": {"seconds": 12}}), PROMPT);
    check(sleeps(), &again(1, 6), RUNS);
    check(sleeps(), &again(1, 12), ended);
    // A hook that has run does not run again.
    let counts = json!({"exec": {"command": ["sh", "-c", "echo x >> /tmp/n; sleep 2"]}});
    let script = "trap 'sleep 6; exit $(cat /tmp/n | wc -l)' TERM; while true; do sleep 1; done";
    check(
        hooked(counts, script),
        &again(3, 16),
        "Failed PodFailed a:terminated(Error 1)",
    );
    let (_, events) = play(&slow(PROMPT), &[], &again(2, 22));
    let said = |text: &str| events.iter().filter(|event| event.contains(text)).count();
    assert_eq!(said("a Killing: Stopping container a"), 1, "{events:#?}");
    assert_eq!(said("FailedPreStopHook") + said(" x2"), 0, "{events:#?}");
    // With less time from the start it is killed while its hook runs, after the two seconds that everybody has.
    check(slow(STUBBORN), &[Wait(5), Delete(Some(3)), Wait(4)], RUNS);
    check(slow(STUBBORN), &[Wait(5), Delete(Some(3)), Wait(7)], KILLED);
    check(slow(PROMPT), &[Wait(5), Delete(Some(3)), Wait(5)], ended);
    // A second is the least, for hooks, too.
    let quick = hooked(
        json!({"exec": {"command": ["sh", "-c", "touch /tmp/x"]}}),
        "trap 'test -e /tmp/x && exit 7; exit 0' TERM; while true; do sleep 1; done",
    );
    check(
        quick,
        &[Wait(5), Delete(Some(0)), Wait(5)],
        "Failed PodFailed a:terminated(Error 7)",
    );
}

/// A pass ends its work even if the pod is deleted meanwhile.
#[test]
fn while_it_starts() {
    let image = |name: &str, image: &str| json!({"name": name, "image": image});
    let waits = "Pending ContainersNotReady a:waiting(ContainerCreating)";
    let ended = "Succeeded PodCompleted a:terminated(Completed 0)";
    let slow = || pod(json!([image("a", "slow:1")]));
    check(slow(), &[Wait(5)], waits);
    for grace in [None, Some(0), Some(1)] {
        check(slow(), &[Wait(3), Delete(grace), Wait(3)], waits);
        check(slow(), &[Wait(3), Delete(grace), Wait(14)], ended);
    }
    let (_, events) = play(&slow(), &[], &[Wait(3), Delete(None), Wait(14)]);
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| event.split(':').next())
        .collect();
    assert_eq!(
        said,
        ["a Pulling", "a Pulled", "a Created", "a Started", "a Killing"],
        "{events:#?}"
    );
    // So are those that come after it.
    check(
        pod(json!([image("a", "slow:1"), image("b", "nginx:1")])),
        &[Wait(3), Delete(None), Wait(14)],
        "Succeeded PodCompleted a:terminated(Completed 0) b:terminated(Completed 0)",
    );
    check(
        pod(json!([image("a", "nginx:1"), image("b", "slow:1")])),
        &[Wait(3), Delete(None), Wait(3)],
        "Pending ContainersNotReady a:waiting(ContainerCreating) b:waiting(ContainerCreating)",
    );
    // But not what would have to wait for something to end.
    let mut first = pod(json!([image("a", "nginx:1")]));
    first["initContainers"] = json!([image("i", "slow:1")]);
    check(
        first,
        &[Wait(3), Delete(None), Wait(14)],
        "Failed PodFailed i:terminated(Completed 0) a:terminated(ContainerStatusUnknown 137)",
    );
    check(
        pod(json!([image("a", "missing:1")])),
        &[Wait(5), Delete(None), Wait(4)],
        LOST,
    );
    let hooked = |script: &str, seconds: &str| {
        pod(json!([with(
            sh("a", script),
            "lifecycle",
            json!({"postStart": {"exec": {"command": ["sleep", seconds]}}}),
        )]))
    };
    check(hooked(PROMPT, "10"), &[Wait(5), Delete(None), Wait(4)], waits);
    check(hooked(PROMPT, "10"), &[Wait(5), Delete(None), Wait(12)], ended);
    check(
        hooked(STUBBORN, "10"),
        &[Wait(5), Delete(Some(3)), Wait(20)],
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
