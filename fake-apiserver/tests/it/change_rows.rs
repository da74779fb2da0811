//! Rows of containers whose image changes while they run, and of those that end again and again.

use shared_json::{Value, json};

use crate::leaving_rows::Step::{Delete, Patch, Wait};
use crate::leaving_rows::{Step, play};
use crate::support::{sh, with};

const POD: &str = "/api/v1/namespaces/default/pods/p";
const RUNS: &str = "Running ready a:running";

/// A pod that has a second to end.
fn pod(policy: &str, containers: &[Value]) -> Value {
    json!({"restartPolicy": policy, "terminationGracePeriodSeconds": 1, "containers": containers})
}

/// The status after these steps, and the events by then.
#[track_caller]
fn check(spec: &Value, steps: &[Step], status: &str, said: &[&str]) {
    let (found, events) = play(spec, &[], steps);
    assert_eq!(found, status, "{spec} {events:#?}");
    for said in said {
        assert!(
            events.iter().any(|event| event.contains(said)),
            "{spec}: {said}: {events:#?}"
        );
    }
}

fn image(name: &str, image: &str) -> Step {
    Patch(
        POD,
        json!({"spec": {"containers": [{"name": name, "image": image}]}}),
    )
}

#[test]
fn images_that_change() {
    let forever = || sh("a", "sleep 600");
    let changed = "a Killing: Container a definition changed, will be restarted";
    let again = [Wait(5), image("a", "busybox:2"), Wait(8)];
    // Whatever the policy.
    for policy in ["Always", "OnFailure", "Never"] {
        check(
            &pod(policy, &[forever()]),
            &again,
            "Running ready a:runningx1",
            &[changed, "a Started: Container started x2"],
        );
    }
    // The others run on.
    check(
        &pod("Always", &[forever(), sh("b", "sleep 600")]),
        &again,
        "Running ready a:runningx1 b:running",
        &[changed, "b Started: Container started"],
    );
    // Another name of the same image is another image.
    check(
        &pod("Always", &[forever()]),
        &[Wait(5), image("a", "docker.io/library/busybox:1"), Wait(8)],
        "Running ready a:runningx1",
        &[changed],
    );
    // There and back.
    check(
        &pod("Always", &[forever()]),
        &[
            Wait(5),
            image("a", "busybox:2"),
            Wait(8),
            image("a", "busybox:1"),
            Wait(8),
        ],
        "Running ready a:runningx2",
        &["a Killing: Container a definition changed, will be restarted x2"],
    );
    // It is killed before its new image is there.
    check(
        &pod("Always", &[forever()]),
        &[Wait(5), image("a", "missing:1"), Wait(8)],
        "Running ContainersNotReady a:waiting(ErrImagePull)",
        &[changed, "a Failed: Error: ErrImagePull"],
    );
    check(
        &pod("Always", &[forever(), sh("b", "sleep 600")]),
        &[Wait(5), image("a", "missing:1"), Wait(8)],
        "Running ContainersNotReady a:waiting(ErrImagePull) b:running",
        &[changed],
    );
    // What was wrong is mended, though the next try was not due yet.
    check(
        &pod("Always", &[forever()]),
        &[
            Wait(5),
            image("a", "missing:1"),
            Wait(8),
            image("a", "busybox:1"),
            Wait(4),
        ],
        "Running ready a:runningx1",
        &["a Started: Container started x2"],
    );
    check(
        &pod("Always", &[json!({"name": "a", "image": "missing:1"})]),
        &[Wait(20), image("a", "nginx:1"), Wait(4)],
        RUNS,
        &["a Failed: Error: ErrImagePull"],
    );
    // What has ended for good stays so.
    check(
        &pod("Never", &[sh("a", "exit 3"), sh("b", "sleep 600")]),
        &again,
        "Running ContainersNotReady a:terminated(Error 3) b:running",
        &["b Started"],
    );
    check(
        &pod("OnFailure", &[sh("a", "true"), sh("b", "sleep 600")]),
        &again,
        "Running ContainersNotReady a:terminated(Completed 0) b:running",
        &["b Started"],
    );
    // A pod that has ended is over.
    check(
        &pod("Never", &[sh("a", "true")]),
        &again,
        "Succeeded PodCompleted a:terminated(Completed 0)",
        &["a Started"],
    );
    // What is on its way out does not begin anew.
    let mut leaving = pod("Always", &[forever()]);
    leaving["terminationGracePeriodSeconds"] = json!(20);
    check(
        &leaving,
        &[Wait(5), Delete(None), Wait(2), image("a", "busybox:2"), Wait(5)],
        RUNS,
        &["a Killing: Stopping container a"],
    );
    // Its hook runs, and it has its time.
    let hooked = with(
        forever(),
        json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "6"]}}}}),
    );
    let mut slow = pod("Always", &[hooked]);
    slow["terminationGracePeriodSeconds"] = json!(20);
    let after = |seconds| [Wait(5), image("a", "busybox:2"), Wait(seconds)];
    check(&slow, &after(5), RUNS, &[changed]);
    check(&slow, &after(30), "Running ready a:runningx1", &[changed]);
    // It waits for what it ended too often no longer.
    check(
        &pod("Always", &[sh("a", "exit 1")]),
        &[Wait(6), image("a", "busybox:2"), Wait(3)],
        "Running ContainersNotReady a:terminated(Error 1)x2",
        &["a Started: Container started x3"],
    );
    // One that never runs again does not wait for its image.
    check(
        &pod("Never", &[forever()]),
        &[Wait(5), image("a", "missing:1"), Wait(8)],
        "Failed PodFailed a:terminated(Error 137)",
        &[changed, "a Failed: Error: ErrImagePull"],
    );
    let labels = Patch(POD, json!({"metadata": {"labels": {"l": "m"}}}));
    check(
        &pod("Always", &[forever()]),
        &[Wait(5), labels, Wait(8)],
        RUNS,
        &["a Started: Container started"],
    );
}

/// How often a container has been started again after so many seconds: it waits ten seconds, and then twice as long each time, up to
/// five minutes.
#[test]
fn ends_that_come_too_often() {
    let restarts = |spec: &Value, seconds: u64| {
        let (status, _) = play(spec, &[], &[Wait(seconds)]);
        let (_, count) = status.rsplit_once('x').unwrap_or(("", "0"));
        count.parse::<u32>().unwrap_or_default()
    };
    let crashes = |policy: &str, script: &str| pod(policy, &[sh("a", script)]);
    for (policy, script) in [("Always", "exit 3"), ("OnFailure", "exit 3"), ("Always", "true")] {
        let spec = crashes(policy, script);
        for (seconds, expected) in [
            (5, 1),
            (10, 1),
            (25, 2),
            (32, 2),
            (55, 3),
            (70, 3),
            (125, 4),
            (150, 4),
        ] {
            assert_eq!(restarts(&spec, seconds), expected, "{policy} {script} {seconds}");
        }
    }
    let spec = crashes("Always", "exit 3");
    for (seconds, expected) in [(240, 5), (310, 5), (420, 6), (600, 6), (860, 7)] {
        assert_eq!(restarts(&spec, seconds), expected, "{seconds}");
    }
    // What counts is the end: time that it runs is not waited again.
    let slow = crashes("Always", "sleep 15; exit 1");
    for (seconds, expected) in [(20, 1), (40, 1), (50, 2), (74, 2), (95, 3)] {
        assert_eq!(restarts(&slow, seconds), expected, "{seconds}");
    }
    // After ten minutes everything is forgotten, even if it runs no longer.
    let well = |seconds: u64| {
        let script =
            format!("echo x >> /v/n; if test $(cat /v/n | wc -l) = 3; then sleep {seconds}; fi; exit 1");
        let container = with(
            sh("a", &script),
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        );
        with(
            pod("Always", &[container]),
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        )
    };
    // Its third run begins after some fifteen seconds; then it would wait for twenty, and ten if all is forgotten.
    assert_eq!(restarts(&well(500), 530), 2);
    assert_eq!(restarts(&well(500), 565), 3);
    assert_eq!(restarts(&well(620), 643), 3);
    assert_eq!(restarts(&well(595), 618), 2);
    assert_eq!(restarts(&well(595), 650), 3);
}

#[test]
fn what_is_shown_of_ends_that_come_too_often() {
    let crashes = pod("Always", &[sh("a", "exit 3")]);
    let back_off = "a BackOff: Back-off restarting failed container a in pod p_default(UID)";
    // Its end is shown until its node looks at it again, which is when it may begin anew, or after a minute.
    let ended = |count: u32| format!("Running ContainersNotReady a:terminated(Error 3)x{count}");
    for (seconds, count) in [(8, 1), (25, 2), (55, 3), (125, 4)] {
        check(&crashes, &[Wait(seconds)], &ended(count), &[back_off]);
    }
    check(
        &crashes,
        &[Wait(340)],
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x5",
        &[back_off],
    );
    check(
        &crashes,
        &[Wait(600)],
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x6",
        &[back_off],
    );
    // Whatever lets its node look earlier shows it earlier.
    let labels = || Patch(POD, json!({"metadata": {"labels": {"l": "m"}}}));
    check(
        &crashes,
        &[Wait(8), labels(), Wait(2)],
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x1",
        &["in pod p_default(UID) x2"],
    );
    // Each container has delays of its own.
    check(
        &pod("Always", &[sh("a", "exit 3"), sh("b", "sleep 20; exit 4")]),
        &[Wait(28)],
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x2 b:runningx1",
        &[back_off],
    );
    let first = |policy: &str| {
        let mut spec = pod("Always", &[sh("a", "sleep 600")]);
        let mut init = sh("i", "exit 3");
        if !policy.is_empty() {
            init["restartPolicy"] = json!(policy);
        }
        spec["initContainers"] = json!([init]);
        spec
    };
    check(
        &first(""),
        &[Wait(25)],
        "Pending ContainersNotReady i:terminated(Error 3)x2 a:waiting(PodInitializing)",
        &["i BackOff: Back-off restarting failed container i in pod p_default(UID)"],
    );
    // A sidecar that ends too often holds nobody up once the others run.
    check(
        &with(
            first("Always"),
            json!({"initContainers": [with(sh("i", "sleep 2; exit 3"), json!({"restartPolicy": "Always"}))]}),
        ),
        &[Wait(12)],
        "Running ContainersNotReady i:terminated(Error 3)x1 a:running",
        &["i BackOff"],
    );
    // What is on its way out waits for nothing.
    check(
        &crashes,
        &[Wait(8), Delete(None), Wait(3)],
        "Failed PodFailed a:terminated(Error 3)x1",
        &[back_off],
    );
    // Twice a probe may kill it before it has to wait: what counts is how its last run but one ended.
    let probed = with(
        sh("a", "trap exit TERM; while true; do sleep 1; done"),
        json!({"livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 1}}),
    );
    let probed = pod("Always", &[probed]);
    check(&probed, &[Wait(4)], "Running ready a:runningx1", &["a Killing"]);
    check(&probed, &[Wait(6)], "Running ready a:runningx2", &["a Killing"]);
    check(
        &probed,
        &[Wait(12)],
        "Running ContainersNotReady a:waiting(CrashLoopBackOff)x2",
        &[back_off],
    );
}
