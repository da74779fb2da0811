//! Rows of pods that are deleted, and of ephemeral containers.

use shared_json::{Value, json};

use crate::lives::{Life, live};
use crate::support::sh;

/// A stubborn program does not care that it is asked to end; a prompt one does.
const STUBBORN: &str = "sleep 1000";
const PROMPT: &str = "trap exit TERM; while true; do sleep 1; done";

fn hooked(mut container: Value, hook: Value) -> Value {
    container["lifecycle"] = json!({"preStop": hook});
    container
}

fn exec(command: &[&str]) -> Value {
    json!({"exec": {"command": command}})
}

/// A pod that may take `grace` seconds to end, and its containers; sidecars are those named `s…`, init containers those named `i…`.
fn pod(grace: u64, containers: &[Value]) -> Value {
    let (mut first, mut regular) = (Vec::new(), Vec::new());
    for container in containers {
        let mut container = container.clone();
        match container["name"].as_str().unwrap_or_default().chars().next() {
            Some('s') => {
                container["restartPolicy"] = json!("Always");
                first.push(container);
            }
            Some('i') => first.push(container),
            _ => regular.push(container),
        }
    }
    json!({"terminationGracePeriodSeconds": grace, "initContainers": first, "containers": regular})
}

/// The pod is deleted after five seconds; so many seconds after that it is still there, and so many after that it is gone.
#[track_caller]
fn check(spec: Value, there: Option<u64>, gone: u64, said: &str) {
    let life = |deleted| Life {
        spec: spec.clone(),
        seconds: 5,
        deleted: Some(deleted),
        ..Life::default()
    };
    if let Some(there) = there {
        assert_ne!(live(life(there)).0, "gone", "{spec}");
    }
    let (status, events) = live(life(gone));
    assert_eq!(status, "gone", "{spec}");
    assert!(
        events.iter().any(|event| event.contains(said)),
        "{spec}: {events:#?}"
    );
}

#[test]
fn asked_to_end() {
    let stopping = "a Killing: Stopping container a";
    check(pod(30, &[sh("a", PROMPT)]), None, 3, stopping);
    check(pod(5, &[sh("a", STUBBORN)]), Some(4), 7, stopping);
    check(pod(9, &[sh("a", STUBBORN)]), Some(8), 11, stopping);
    check(
        pod(
            30,
            &[sh(
                "a",
                "trap 'sleep 4; exit 3' TERM; while true; do sleep 1; done",
            )],
        ),
        Some(3),
        8,
        stopping,
    );
    check(
        pod(5, &[sh("a", PROMPT), sh("b", STUBBORN)]),
        Some(4),
        7,
        "b Killing: Stopping container b",
    );
    check(
        pod(30, &[json!({"name": "a", "image": "nginx:1"})]),
        None,
        3,
        stopping,
    );
    // Two seconds are the least.
    check(pod(1, &[sh("a", STUBBORN)]), Some(1), 4, stopping);
    // Without any time, nobody waits for the node.
    check(pod(0, &[sh("a", STUBBORN)]), None, 0, "a Started");
    // What does not run need not end.
    check(
        pod(30, &[json!({"name": "a", "image": "missing:1"})]),
        None,
        2,
        "a Failed: Error: ErrImagePull",
    );
    check(pod(30, &[sh("a", "exit 1")]), None, 2, "a BackOff");
    check(
        pod(3, &[sh("i", STUBBORN), sh("a", PROMPT)]),
        Some(2),
        5,
        "i Killing: Stopping container i",
    );
}

#[test]
fn hooks_before_the_end() {
    let failed = "a FailedPreStopHook: PreStopHook failed";
    let stopping = "a Killing: Stopping container a";
    let slow = || exec(&["sleep", "3"]);
    check(pod(30, &[hooked(sh("a", PROMPT), slow())]), Some(2), 6, stopping);
    check(
        pod(30, &[hooked(sh("a", PROMPT), json!({"sleep": {"seconds": 3}}))]),
        Some(2),
        6,
        stopping,
    );
    check(
        pod(30, &[hooked(sh("a", PROMPT), exec(&["false"]))]),
        None,
        3,
        failed,
    );
    check(
        pod(30, &[hooked(sh("a", PROMPT), json!({"httpGet": {"port": 80}}))]),
        None,
        3,
        failed,
    );
    // Its time counts, but something is left for the container.
    check(pod(6, &[hooked(sh("a", STUBBORN), slow())]), Some(5), 8, stopping);
    check(
        pod(3, &[hooked(sh("a", STUBBORN), exec(&["sleep", "100"]))]),
        Some(4),
        7,
        stopping,
    );
    check(pod(4, &[hooked(sh("a", STUBBORN), slow())]), Some(4), 7, stopping);
    // Hooks run side by side.
    check(
        pod(
            30,
            &[hooked(sh("a", PROMPT), slow()), hooked(sh("b", PROMPT), slow())],
        ),
        Some(2),
        6,
        stopping,
    );
    check(
        pod(
            30,
            &[hooked(sh("s", PROMPT), slow()), hooked(sh("a", PROMPT), slow())],
        ),
        Some(2),
        7,
        "s Killing: Stopping container s",
    );
}

#[test]
fn sidecars_end_last() {
    let stopping = "s Killing: Stopping container s";
    check(pod(30, &[sh("s", PROMPT), sh("a", PROMPT)]), None, 4, stopping);
    check(
        pod(5, &[sh("s", STUBBORN), sh("a", PROMPT)]),
        Some(4),
        7,
        stopping,
    );
    // They have two seconds when the time is over, all at once.
    check(
        pod(4, &[sh("s", STUBBORN), sh("a", STUBBORN)]),
        Some(5),
        8,
        stopping,
    );
    check(
        pod(4, &[sh("s", STUBBORN), sh("s2", STUBBORN), sh("a", STUBBORN)]),
        Some(5),
        8,
        stopping,
    );
    check(
        pod(6, &[sh("s", PROMPT), sh("a", STUBBORN)]),
        Some(5),
        9,
        stopping,
    );
}

/// Containers are put into a pod after three seconds; its status after so many seconds, and something that was said.
#[track_caller]
fn debug(spec: Value, containers: Value, seconds: u64, status: &str, said: &str) {
    let (found, events) = live(Life {
        spec: spec.clone(),
        seconds,
        patch: Some((
            3,
            "/ephemeralcontainers",
            json!({"spec": {"ephemeralContainers": containers}}),
        )),
        ..Life::default()
    });
    assert_eq!(found, status, "{containers} {events:#?}");
    assert!(
        events.iter().any(|event| event.starts_with(said)),
        "{containers}: {events:#?}"
    );
}

#[test]
fn containers_to_look_at_pods() {
    let serving = || pod(1, &[json!({"name": "a", "image": "nginx:1"})]);
    let image = |image: &str| json!({"name": "d", "image": image});
    let with = |mut container: Value, more: Value| {
        for (field, value) in more.as_object().unwrap() {
            container[field] = value.clone();
        }
        container
    };
    let started = "d Started: Container started";
    let d = |script: &str| json!([sh("d", script)]);
    debug(
        serving(),
        d("sleep 1"),
        8,
        "Running ready a:running d:terminated(Completed 0)",
        started,
    );
    debug(
        serving(),
        d("exit 3"),
        8,
        "Running ready a:running d:terminated(Error 3)",
        started,
    );
    debug(
        serving(),
        d(STUBBORN),
        8,
        "Running ready a:running d:running",
        started,
    );
    // They are never started again.
    debug(
        serving(),
        d("exit 3"),
        60,
        "Running ready a:running d:terminated(Error 3)",
        started,
    );
    debug(
        serving(),
        json!([sh("d", "exit 1"), sh("e", STUBBORN)]),
        8,
        "Running ready a:running d:terminated(Error 1) e:running",
        "e Started: Container started",
    );
    debug(
        serving(),
        json!([with(sh("d", STUBBORN), json!({"targetContainerName": "a"}))]),
        8,
        "Running ready a:running d:running",
        started,
    );
    debug(
        serving(),
        json!([image("nginx:2")]),
        8,
        "Running ready a:running d:running",
        started,
    );
    // Nothing tells the node to look at the pod again: what went wrong is shown with the next try.
    debug(
        serving(),
        json!([image("missing:1")]),
        5,
        "Running ready a:running d:waiting(ContainerCreating)",
        "d Failed: Failed to pull image \"missing:1\"",
    );
    debug(
        serving(),
        json!([image("slow:1")]),
        4,
        "Running ready a:running d:waiting(ContainerCreating)",
        "d Pulling: Pulling image \"slow:1\"",
    );
    debug(
        serving(),
        json!([image("slow:1")]),
        8,
        "Running ready a:running d:running",
        "d Pulled: Successfully pulled image \"slow:1\"",
    );
}

#[test]
fn pods_to_look_at() {
    let started = "d Started: Container started";
    let d = json!([sh("d", STUBBORN)]);
    // They start even before the pod's own containers can.
    debug(
        pod(1, &[sh("i", STUBBORN), sh("a", PROMPT)]),
        d.clone(),
        8,
        "Pending ContainersNotReady i:running a:waiting(PodInitializing) d:running",
        started,
    );
    debug(
        pod(1, &[json!({"name": "a", "image": "missing:1"})]),
        d.clone(),
        8,
        "Pending ContainersNotReady a:waiting(ImagePullBackOff) d:running",
        started,
    );
    let mut unready = sh("a", PROMPT);
    unready["readinessProbe"] = json!({"exec": {"command": ["false"]}, "periodSeconds": 1});
    debug(
        pod(1, &[unready]),
        d.clone(),
        8,
        "Running ContainersNotReady a:running d:running",
        started,
    );
    debug(
        pod(1, &[sh("s", PROMPT), sh("a", PROMPT)]),
        d.clone(),
        8,
        "Running ready s:running a:running d:running",
        started,
    );
    debug(
        pod(1, &[sh("a", "exit 1")]),
        d.clone(),
        8,
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x1 d:running",
        started,
    );
    debug(
        pod(1, &[sh("a", PROMPT)]),
        json!([{"name": "d", "image": "missing:1"}]),
        30,
        "Running ready a:running d:waiting(ErrImagePull)",
        "d BackOff: Back-off pulling image \"missing:1\"",
    );
    debug(
        pod(1, &[sh("a", PROMPT)]),
        json!([sh("d", "sleep 3; exit 4"), {"name": "e", "image": "slow:1"}]),
        12,
        "Running ready a:running d:terminated(Error 4) e:running",
        "e Pulled: Successfully pulled image \"slow:1\"",
    );
    // They do not keep a pod from ending, and end with it.
    let mut ends = pod(1, &[sh("a", "sleep 6")]);
    ends["restartPolicy"] = json!("Never");
    debug(
        ends.clone(),
        d.clone(),
        14,
        "Succeeded PodCompleted a:terminated(Completed 0) d:terminated(Error 137)",
        "d Killing: Stopping container d",
    );
    ends["containers"][0]["command"][2] = json!("sleep 6; exit 2");
    debug(
        ends,
        json!([sh("d", "exit 0")]),
        14,
        "Failed PodFailed a:terminated(Error 2) d:terminated(Completed 0)",
        started,
    );
}
