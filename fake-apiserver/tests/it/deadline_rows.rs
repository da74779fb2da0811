//! Rows of pods that may be active for a limited time (`activeDeadlineSeconds`): the start of the time, the pods that it ends,
//! and their status and events then. Source: the kubelet's `active_deadline.go`, and how it makes a pod's status.

use shared_json::{Value, json};

use crate::leaving_rows::Step::{self, Delete, Patch, Wait};
use crate::leaving_rows::play;
use crate::support::{sh, with};

const POD: &str = "/api/v1/namespaces/default/pods/p";
const NODE: &str = "/api/v1/nodes/node1";
const SAID: &str = "DeadlineExceeded: Pod was active on the node longer than the specified deadline";

const STUBBORN: &str = "sleep 1000";
const PROMPT: &str = "trap exit TERM; while true; do sleep 1; done";

/// A pod with a deadline and some containers; it ends within a second.
fn pod(deadline: u64, policy: &str, containers: Value) -> Value {
    json!({
        "activeDeadlineSeconds": deadline, "restartPolicy": policy, "terminationGracePeriodSeconds": 1,
        "containers": containers,
    })
}

/// The state of a pod after some steps, and whether its end was reported as that of its deadline.
#[track_caller]
fn check(spec: Value, steps: &[Step], expected: &str) {
    let (status, events) = play(&spec, &[], steps);
    assert_eq!(status, expected, "{spec} {events:#?}");
    let is_said = events.iter().any(|event| event.contains(SAID));
    assert_eq!(is_said, expected.contains("DeadlineExceeded"), "{events:#?}");
}

#[test]
fn containers_that_run() {
    let runs = "Running ready a:running";
    let killed = "Failed PodFailed DeadlineExceeded a:terminated(Error 137)";
    let ended = "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)";
    for policy in ["Always", "OnFailure", "Never"] {
        let stubborn = || pod(6, policy, json!([sh("a", STUBBORN)]));
        check(stubborn(), &[Wait(5)], runs);
        check(stubborn(), &[Wait(12)], killed);
        // Nothing starts it again.
        check(stubborn(), &[Wait(120)], killed);
        check(pod(6, policy, json!([sh("a", PROMPT)])), &[Wait(12)], ended);
    }
    // The pod's own time to end is left to its containers; that it has failed is told when they have ended.
    let slow = with(
        pod(6, "Never", json!([sh("a", STUBBORN)])),
        json!({"terminationGracePeriodSeconds": 20}),
    );
    let (status, events) = play(&slow, &[], &[Wait(15)]);
    assert_eq!(status, "Running PodFailed a:running");
    assert!(events.iter().any(|event| event.contains(SAID)), "{events:#?}");
    check(slow, &[Wait(30)], killed);
    // Both end, each in its way.
    check(
        pod(6, "Always", json!([sh("a", PROMPT), sh("b", STUBBORN)])),
        &[Wait(12)],
        "Failed PodFailed DeadlineExceeded a:terminated(Completed 0) b:terminated(Error 137)",
    );
}

#[test]
fn containers_that_do_not_run() {
    // What has ended keeps how it did.
    check(
        pod(10, "Never", json!([sh("a", "exit 3"), sh("b", STUBBORN)])),
        &[Wait(16)],
        "Failed PodFailed DeadlineExceeded a:terminated(Error 3) b:terminated(Error 137)",
    );
    check(
        pod(10, "Never", json!([sh("a", "true"), sh("b", STUBBORN)])),
        &[Wait(16)],
        "Failed PodFailed DeadlineExceeded a:terminated(Completed 0) b:terminated(Error 137)",
    );
    // What waits to be started again has ended.
    check(
        pod(25, "Always", json!([sh("a", "exit 3")])),
        &[Wait(31)],
        "Failed PodFailed DeadlineExceeded a:terminated(Error 3)x2",
    );
    // A pull under way is not given up: the pod's worker is busy with it, and finds out with the next look.
    let pulls = || pod(4, "Always", json!([{"name": "a", "image": "slow:1"}]));
    check(
        pulls(),
        &[Wait(8)],
        "Pending ContainersNotReady a:waiting(ContainerCreating)",
    );
    check(
        pulls(),
        &[Wait(20)],
        "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)",
    );
    // What cannot be pulled is waited for no longer.
    check(
        pod(4, "Always", json!([{"name": "a", "image": "missing:1"}])),
        &[Wait(8)],
        "Failed PodFailed DeadlineExceeded a:terminated(ContainerStatusUnknown 137)",
    );
    // A volume that never comes holds nobody.
    let volume = with(
        pod(4, "Always", json!([sh("a", STUBBORN)])),
        json!({"volumes": [{"name": "v", "configMap": {"name": "none"}}]}),
    );
    check(
        volume,
        &[Wait(8)],
        "Failed PodFailed DeadlineExceeded a:terminated(ContainerStatusUnknown 137)",
    );
}

#[test]
fn init_containers_and_sidecars() {
    let of = |first: Value, more: Value| {
        with(
            pod(6, "Always", json!([sh("a", PROMPT)])),
            with(json!({"initContainers": first}), more),
        )
    };
    let always = |name: &str, script: &str| with(sh(name, script), json!({"restartPolicy": "Always"}));
    let none = json!({});
    check(
        of(json!([sh("i", STUBBORN)]), none.clone()),
        &[Wait(12)],
        "Failed PodFailed DeadlineExceeded i:terminated(Error 137) a:waiting(PodInitializing)",
    );
    check(
        of(json!([sh("i", "true"), sh("j", STUBBORN)]), none.clone()),
        &[Wait(12)],
        "Failed PodFailed DeadlineExceeded i:terminated(Completed 0) j:terminated(Error 137) a:waiting(PodInitializing)",
    );
    check(
        of(json!([always("s", PROMPT)]), none.clone()),
        &[Wait(14)],
        "Failed PodFailed DeadlineExceeded s:terminated(Completed 0) a:terminated(Completed 0)",
    );
    // Init containers' time counts.
    check(
        of(json!([sh("i", "sleep 4")]), none),
        &[Wait(12)],
        "Failed PodFailed DeadlineExceeded i:terminated(Completed 0) a:terminated(Completed 0)",
    );
}

#[test]
fn when_the_time_counts() {
    // Who has ended before has not been active too long.
    let quick = |script: &str| pod(10, "Never", json!([sh("a", script)]));
    check(
        quick("true"),
        &[Wait(60)],
        "Succeeded PodCompleted a:terminated(Completed 0)",
    );
    check(
        quick("exit 3"),
        &[Wait(60)],
        "Failed PodFailed a:terminated(Error 3)",
    );
    // A pod that no node has is not active.
    let gated = with(
        pod(6, "Never", json!([sh("a", PROMPT)])),
        json!({"nodeSelector": {"disk": "fast"}}),
    );
    check(gated.clone(), &[Wait(60)], "Pending");
    let label = || Patch(NODE, json!({"metadata": {"labels": {"disk": "fast"}}}));
    check(
        gated.clone(),
        &[Wait(60), label(), Wait(4)],
        "Running ready a:running",
    );
    check(
        gated,
        &[Wait(60), label(), Wait(12)],
        "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)",
    );
    // A shorter deadline than what is over ends it at once; none may be longer.
    let set = |seconds: u64| Patch(POD, json!({"spec": {"activeDeadlineSeconds": seconds}}));
    check(
        pod(500, "Never", json!([sh("a", PROMPT)])),
        &[Wait(60), set(20), Wait(4)],
        "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)",
    );
    // A pod that is being deleted has its own time: the kubelet looks at no deadline of one that ends.
    let slow = with(
        pod(8, "Never", json!([sh("a", STUBBORN)])),
        json!({"terminationGracePeriodSeconds": 30}),
    );
    check(
        slow.clone(),
        &[Wait(4), Delete(None), Wait(2)],
        "Running ready a:running",
    );
    // A deletion while its deadline ends it changes nothing of why.
    check(
        slow,
        &[Wait(15), Delete(None), Wait(30)],
        "Failed PodFailed DeadlineExceeded a:terminated(Error 137)",
    );
}
