//! Rows of containers that are killed for their memory: 137 and `OOMKilled`, and otherwise as for any other end.

use shared_json::{Value, json};

use crate::lives::{Life, live};
use crate::support::{sh, with};

/// Killed half a second after each start.
fn always() -> Value {
    json!({"exits": [{"afterMs": 500, "code": 137, "reason": "OOMKilled"}]})
}

/// Killed once; the next run goes on.
fn once() -> Value {
    json!({"exits": [{"afterMs": 500, "code": 137, "reason": "OOMKilled"}, {"afterMs": 900_000}]})
}

fn program(name: &str) -> Value {
    json!({"name": name, "image": "busybox:1"})
}

fn pod(policy: &str, containers: Value) -> Value {
    json!({"restartPolicy": policy, "terminationGracePeriodSeconds": 1, "containers": containers})
}

fn alone(policy: &str) -> Value {
    pod(policy, json!([program("a")]))
}

/// A pod whose container `a` runs such a program is like this after so many seconds.
#[track_caller]
fn check(spec: Value, script: Value, rows: &[(u64, &str)]) {
    for (seconds, status) in rows {
        check_life(
            Life {
                spec: spec.clone(),
                annotations: json!({"program.fake-apiserver/a": script.to_string()}),
                seconds: *seconds,
                ..Life::default()
            },
            status,
        );
    }
}

#[track_caller]
fn check_life(life: Life, status: &str) {
    let (found, said) = live(life.clone());
    assert_eq!(found, status, "{} after {} s: {said:#?}", life.spec, life.seconds);
}

#[test]
fn restarts() {
    check(
        alone("Never"),
        always(),
        &[(30, "Failed PodFailed a:terminated(OOMKilled 137)")],
    );
    for policy in ["OnFailure", "Always"] {
        check(
            alone(policy),
            always(),
            &[
                // The first end is followed by another start at once, the next after ten and twenty seconds.
                (5, "Running ContainersNotReady a:terminated(OOMKilled 137)x1"),
                (25, "Running ContainersNotReady a:terminated(OOMKilled 137)x2"),
            ],
        );
        check(
            alone(policy),
            once(),
            &[
                (5, "Running ready a:runningx1"),
                (60, "Running ready a:runningx1"),
            ],
        );
    }
    // A process of its own was killed, and the program has ended by itself: the code is the program's.
    let child = json!({"exits": [{"afterMs": 500, "code": 1, "reason": "OOMKilled"}]});
    check(
        alone("Never"),
        child,
        &[(5, "Failed PodFailed a:terminated(OOMKilled 1)")],
    );
    // Killed by somebody else.
    let killed = json!({"exits": [{"afterMs": 500, "code": 137}]});
    check(
        alone("Never"),
        killed,
        &[(5, "Failed PodFailed a:terminated(Error 137)")],
    );
}

/// Nothing but the words differs from a program that has failed by itself, at any time.
#[test]
fn as_any_other_end() {
    for seconds in [1, 2, 3, 11, 13, 16, 30, 45, 80, 170] {
        let of = |script: Value| {
            live(Life {
                spec: alone("Always"),
                annotations: json!({"program.fake-apiserver/a": script.to_string()}),
                seconds,
                ..Life::default()
            })
        };
        let failed = of(json!({"exits": [{"afterMs": 500, "code": 3}]}));
        let killed = of(always());
        assert_eq!(
            killed.0.replace("OOMKilled 137", "Error 3"),
            failed.0,
            "after {seconds} s"
        );
        assert_eq!(killed.1, failed.1, "after {seconds} s");
    }
}

#[test]
fn beside_others() {
    let beside = |policy: &str, script: &str| pod(policy, json!([program("a"), sh("b", script)]));
    check(
        beside("Never", "sleep 600"),
        always(),
        &[(
            5,
            "Running ContainersNotReady a:terminated(OOMKilled 137) b:running",
        )],
    );
    check(
        beside("Never", "exit 0"),
        always(),
        &[(
            5,
            "Failed PodFailed a:terminated(OOMKilled 137) b:terminated(Completed 0)",
        )],
    );
    check(
        beside("OnFailure", "exit 0"),
        once(),
        &[(
            5,
            "Running ContainersNotReady a:runningx1 b:terminated(Completed 0)",
        )],
    );
    check(
        beside("Always", "sleep 600"),
        once(),
        &[(5, "Running ready a:runningx1 b:running")],
    );
}

#[test]
fn before_others() {
    let first = |policy: &str, more: Value| {
        with(
            pod(policy, json!([sh("b", "sleep 600")])),
            json!({"initContainers": [with(program("a"), more)]}),
        )
    };
    check(
        first("Never", json!({})),
        always(),
        &[(
            5,
            "Failed PodFailed a:terminated(OOMKilled 137) b:waiting(PodInitializing)",
        )],
    );
    for policy in ["OnFailure", "Always"] {
        check(
            first(policy, json!({})),
            always(),
            &[(
                5,
                "Pending ContainersNotReady a:terminated(OOMKilled 137)x1 b:waiting(PodInitializing)",
            )],
        );
    }
    // One that stays beside the others is started again, whatever the pod's policy.
    let stays = json!({"restartPolicy": "Always"});
    check(
        first("Never", stays.clone()),
        once(),
        &[(5, "Running ready a:runningx1 b:running")],
    );
    check(
        first("Never", stays),
        always(),
        &[(
            5,
            "Running ContainersNotReady a:terminated(OOMKilled 137)x1 b:running",
        )],
    );
}

#[test]
fn rules() {
    let ruled = |policy: &str, own: &str, action: &str, codes: Value| {
        let rules = json!([{"action": action, "exitCodes": {"operator": "In", "values": codes}}]);
        let a = with(
            program("a"),
            json!({"restartPolicy": own, "restartPolicyRules": rules}),
        );
        pod(policy, json!([a, sh("b", "sleep 600")]))
    };
    check(
        ruled("Never", "Never", "Restart", json!([137])),
        once(),
        &[(5, "Running ready a:runningx1 b:running")],
    );
    check(
        ruled("Never", "Never", "Restart", json!([1, 2])),
        once(),
        &[(
            5,
            "Running ContainersNotReady a:terminated(OOMKilled 137) b:running",
        )],
    );
    let own = with(program("a"), json!({"restartPolicy": "Never"}));
    check(
        pod("Always", json!([own, sh("b", "sleep 600")])),
        always(),
        &[(
            5,
            "Running ContainersNotReady a:terminated(OOMKilled 137) b:running",
        )],
    );
}

#[test]
fn what_is_not_done_for_it() {
    // Nobody is asked to end: no hook is run, no grace period passes.
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "30"]}}}});
    let hooked = with(
        pod("Never", json!([with(program("a"), hook)])),
        json!({"terminationGracePeriodSeconds": 60}),
    );
    check(
        hooked,
        always(),
        &[(9, "Failed PodFailed a:terminated(OOMKilled 137)")],
    );
    // A probe has nothing to do with it either.
    let probe = json!({"livenessProbe": {"exec": {"command": ["false"]}, "initialDelaySeconds": 30}});
    let probed = pod("Never", json!([with(program("a"), probe)]));
    check(
        probed,
        always(),
        &[(9, "Failed PodFailed a:terminated(OOMKilled 137)")],
    );
}

#[test]
fn and_then() {
    let script = |script: Value| json!({"program.fake-apiserver/a": script.to_string()});
    // Deleted while it waits.
    check_life(
        Life {
            spec: alone("Always"),
            annotations: script(always()),
            seconds: 5,
            deleted: Some(2),
            ..Life::default()
        },
        "gone",
    );
    // A debugger that needs too much stays as it has ended, and the pod as it was.
    check_life(
        Life {
            spec: pod("Always", json!([sh("b", "sleep 600")])),
            annotations: script(always()),
            seconds: 8,
            patch: Some((
                3,
                "/ephemeralcontainers",
                json!({"spec": {"ephemeralContainers": [program("a")]}}),
            )),
            ..Life::default()
        },
        "Running ready b:running a:terminated(OOMKilled 137)",
    );
}

/// The last state while the next run goes on, and the message that it left.
#[test]
fn what_is_told_of_the_last_end() {
    use crate::support::{request, simulate};
    simulate(|| async {
        let cluster = fake_apiserver::Cluster::builder()
            .nodes(1)
            .start()
            .await
            .expect("a cluster");
        let script = json!({"exits": [{"afterMs": 500, "code": 137, "reason": "OOMKilled", "message": "too much"}, {"afterMs": 900_000}]});
        let pod = json!({
            "metadata": {"name": "p", "annotations": {"program.fake-apiserver/a": script.to_string()}},
            "spec": alone("Always"),
        });
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(std::time::Duration::from_secs(5)).await;
        let (_, pod) = request(&cluster, "GET", "/api/v1/namespaces/default/pods/p", &Value::Null).await;
        let status = &pod["status"]["containerStatuses"][0];
        let last = &status["lastState"]["terminated"];
        assert_eq!(
            (
                &last["reason"],
                &last["exitCode"],
                &last["message"],
                &status["restartCount"],
                &status["ready"]
            ),
            (
                &json!("OOMKilled"),
                &json!(137),
                &json!("too much"),
                &json!(1),
                &json!(true)
            ),
            "{status}"
        );
        assert!(
            status["state"]["running"].is_object() && last["containerID"] != status["containerID"],
            "{status}"
        );
    });
}
