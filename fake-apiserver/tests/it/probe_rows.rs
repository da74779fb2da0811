//! Rows of probes: their times, the counted results, and the consequences, as the kubelet's probe workers do it.

use shared_json::{Value, json};

use crate::lives::{Life, live};
use crate::support::{sh, with};

/// The file that probes look for is there from the start, after five seconds, never, and only now and then.
const NOW: &str = "touch /tmp/ok; sleep 600";
const LATE: &str = "sleep 5; touch /tmp/ok; sleep 600";
const NEVER: &str = "sleep 600";
const FLAPS: &str = "touch /tmp/ok; sleep 6; rm /tmp/ok; sleep 6; touch /tmp/ok; sleep 600";
/// It goes for good.
const GOES: &str = "touch /tmp/ok; sleep 6; rm /tmp/ok; sleep 600";
/// Never there, and deaf.
const DEAF: &str = "trap '' TERM; sleep 600";

const RUNS: &str = "Running ready a:running";
const WAITS: &str = "Running ContainersNotReady a:running";

/// A probe that looks for the file every second.
fn each(more: Value) -> Value {
    let probe = json!({"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 2});
    with(probe, more)
}

/// A probe that runs a command every second.
fn run(command: Value, more: Value) -> Value {
    each(with(json!({"exec": {"command": command}}), more))
}

/// A pod of one container with such probes.
fn pod(script: &str, probes: Value) -> Value {
    pod_of(json!([with(sh("a", script), probes)]))
}

fn pod_of(containers: Value) -> Value {
    json!({"terminationGracePeriodSeconds": 1, "containers": containers})
}

fn never_again(script: &str, probes: Value) -> Value {
    with(pod(script, probes), json!({"restartPolicy": "Never"}))
}

/// After so many seconds a pod has this status, and its kubelet has said this by then; has not, if it begins with `!`.
#[track_caller]
fn check(spec: Value, rows: &[(u64, &str, &str)]) {
    for (seconds, status, said) in rows {
        let (found, events) = live(Life {
            spec: spec.clone(),
            seconds: *seconds,
            ..Life::default()
        });
        let place = format!("{spec} after {seconds} s: {events:#?}");
        assert!(
            found.starts_with(status),
            "{found:?} instead of {status:?}: {place}"
        );
        match said.strip_prefix('!') {
            Some(unsaid) => assert!(!events.iter().any(|event| event.contains(unsaid)), "{place}"),
            None => assert!(events.iter().any(|event| event.contains(said)), "{said}: {place}"),
        }
    }
}

#[test]
fn readiness() {
    let probed = |script: &str, probe: Value| pod(script, json!({"readinessProbe": probe}));
    let failed = "a Unhealthy: Readiness probe failed: cat: can't open '/tmp/ok'";
    check(
        probed(NOW, each(json!({}))),
        &[(4, RUNS, "!Unhealthy"), (30, RUNS, "!Unhealthy")],
    );
    check(
        probed(LATE, each(json!({}))),
        &[(4, WAITS, failed), (10, RUNS, failed)],
    );
    // Nobody is restarted for it.
    check(
        probed(NEVER, each(json!({}))),
        &[(60, WAITS, failed), (60, WAITS, "!Killing")],
    );
    check(
        probed(FLAPS, each(json!({"failureThreshold": 1}))),
        &[(5, RUNS, "!Unhealthy"), (10, WAITS, failed), (17, RUNS, failed)],
    );
    check(
        probed(FLAPS, each(json!({"failureThreshold": 3}))),
        &[(6, RUNS, "!Unhealthy"), (12, WAITS, failed)],
    );
    // What fails less often than that does not count.
    check(
        probed(FLAPS, each(json!({"failureThreshold": 10}))),
        &[(11, RUNS, failed), (17, RUNS, failed)],
    );
    check(
        probed(GOES, each(json!({"failureThreshold": 10}))),
        &[(13, RUNS, failed), (22, WAITS, failed)],
    );
    // Nor what succeeds less often.
    check(
        probed(FLAPS, each(json!({"failureThreshold": 1, "successThreshold": 4}))),
        &[(6, RUNS, "a Started"), (15, WAITS, failed), (22, RUNS, failed)],
    );
    check(
        probed(NOW, each(json!({"initialDelaySeconds": 10}))),
        &[(9, WAITS, "!Unhealthy"), (14, RUNS, "!Unhealthy")],
    );
    check(
        probed(NOW, each(json!({"periodSeconds": 100}))),
        &[(4, RUNS, "!Unhealthy")],
    );
    check(
        probed(LATE, each(json!({"periodSeconds": 10}))),
        &[(8, WAITS, failed), (16, RUNS, failed)],
    );
    // What a command prints is told, and any code but zero is a failure.
    check(
        probed(NOW, run(json!(["false"]), json!({}))),
        &[(5, WAITS, "a Unhealthy: Readiness probe failed: ")],
    );
    check(
        probed(NOW, run(json!(["sh", "-c", "echo no; exit 3"]), json!({}))),
        &[(5, WAITS, "a Unhealthy: Readiness probe failed: no")],
    );
    check(
        probed(NOW, run(json!(["true"]), json!({}))),
        &[(4, RUNS, "!Unhealthy")],
    );
    check(
        probed(NOW, run(json!(["nothing-like-that"]), json!({}))),
        &[(5, WAITS, "a Started")],
    );
    check(
        probed(NOW, run(json!(["sleep", "5"]), json!({}))),
        &[(12, WAITS, "a Unhealthy: Readiness probe")],
    );
    check(
        probed(NOW, run(json!(["sleep", "1"]), json!({"timeoutSeconds": 3}))),
        &[(9, RUNS, "!Unhealthy")],
    );
    // A pod is ready when all are.
    let two = |second: &str| {
        let probe = json!({"readinessProbe": each(json!({}))});
        pod_of(json!([
            with(sh("a", NOW), probe.clone()),
            with(sh("b", second), probe)
        ]))
    };
    check(
        two(NOW),
        &[(5, "Running ready a:running b:running", "!Unhealthy")],
    );
    check(
        two(NEVER),
        &[(
            9,
            "Running ContainersNotReady a:running b:running",
            "b Unhealthy: Readiness probe failed",
        )],
    );
    // It is asked anew of a container that has started again, and of one that has ended no more.
    let ends = json!({"readinessProbe": run(json!(["true"]), json!({"successThreshold": 3}))});
    check(
        pod("sleep 8; exit 1", ends.clone()),
        &[
            (7, RUNS, "a Started"),
            (17, "Running ready a:runningx1", "a Started"),
        ],
    );
    check(
        never_again("sleep 8", ends.clone()),
        &[
            (7, RUNS, "a Started"),
            (15, "Succeeded PodCompleted", "!Unhealthy"),
        ],
    );
    check(
        never_again("sleep 8; exit 2", ends),
        &[(15, "Failed PodFailed a:terminated(Error 2)", "!Unhealthy")],
    );
    check(
        never_again(NEVER, json!({"readinessProbe": each(json!({}))})),
        &[(40, WAITS, failed)],
    );
}

#[test]
fn liveness() {
    let probed = |script: &str, probe: Value| pod(script, json!({"livenessProbe": probe}));
    let failed = "a Unhealthy: Liveness probe failed: cat: can't open '/tmp/ok'";
    let killed = "a Killing: Container a failed liveness probe, will be restarted";
    let again = "Running ready a:runningx1";
    check(
        probed(NOW, each(json!({}))),
        &[(4, RUNS, "!Unhealthy"), (60, RUNS, "!Killing")],
    );
    // Until it fails, it counts as alive, and as ready.
    check(
        probed(NEVER, each(json!({"failureThreshold": 20}))),
        &[(5, RUNS, failed), (15, RUNS, "!Killing")],
    );
    check(
        probed(NEVER, each(json!({"initialDelaySeconds": 10}))),
        &[(9, RUNS, "!Unhealthy"), (16, again, killed)],
    );
    check(
        probed(
            NEVER,
            each(json!({"initialDelaySeconds": 10, "failureThreshold": 1})),
        ),
        &[(10, RUNS, "!Killing"), (15, again, killed)],
    );
    // The delay counts from the start that was last.
    check(
        probed(NEVER, each(json!({"initialDelaySeconds": 10}))),
        &[(21, again, killed)],
    );
    check(
        probed(GOES, each(json!({}))),
        &[(6, RUNS, "!Unhealthy"), (12, again, killed)],
    );
    check(
        probed(FLAPS, each(json!({"failureThreshold": 3}))),
        &[(6, RUNS, "!Unhealthy"), (14, again, killed)],
    );
    check(
        probed(FLAPS, each(json!({"failureThreshold": 10}))),
        &[(11, RUNS, failed), (30, RUNS, "!Killing")],
    );
    // Three times in ten seconds each, where nothing else is said.
    let usual = json!({"exec": {"command": ["cat", "/tmp/ok"]}});
    check(
        probed(NEVER, usual.clone()),
        &[(19, RUNS, failed), (19, RUNS, "!Killing"), (34, again, killed)],
    );
    check(probed(NOW, usual), &[(60, RUNS, "!Unhealthy")]);
    check(
        probed(
            GOES,
            run(
                json!(["sh", "-c", "cat /tmp/ok || { echo gone; exit 4; }"]),
                json!({}),
            ),
        ),
        &[(12, again, "gone")],
    );
    check(
        probed(NOW, run(json!(["sleep", "5"]), json!({"initialDelaySeconds": 5}))),
        &[(4, RUNS, "!Killing"), (18, again, killed)],
    );
    // What does not listen is killed when its grace is over: its own, or the one that the probe has.
    let deaf = |probe: Value| {
        let spec = pod(
            DEAF,
            json!({"livenessProbe": each(with(json!({"initialDelaySeconds": 5}), probe))}),
        );
        with(spec, json!({"terminationGracePeriodSeconds": 30}))
    };
    check(
        deaf(json!({})),
        &[(9, RUNS, killed), (30, RUNS, killed), (44, again, killed)],
    );
    check(
        deaf(json!({"terminationGracePeriodSeconds": 3})),
        &[(8, RUNS, killed), (15, again, killed)],
    );
    // Others go on.
    let two = pod_of(json!([
        with(sh("a", GOES), json!({"livenessProbe": each(json!({}))})),
        sh("b", "sleep 600")
    ]));
    check(two, &[(12, "Running ready a:runningx1 b:running", killed)]);
    // By the pod's policy.
    let of_policy = |policy: &str| with(probed(GOES, each(json!({}))), json!({"restartPolicy": policy}));
    check(of_policy("OnFailure"), &[(12, again, killed)]);
    check(
        of_policy("Never"),
        &[
            (6, RUNS, "!Unhealthy"),
            (
                14,
                "Failed PodFailed a:terminated(Error 137)",
                "a Killing: Stopping container a",
            ),
        ],
    );
    // Over the network.
    let network = |image: &str, probe: Value| {
        let mut container = json!({"name": "a", "image": image, "livenessProbe": with(probe, json!({"periodSeconds": 1, "initialDelaySeconds": 5}))});
        if image == "busybox:1" {
            container["command"] = json!(["sleep", "600"]);
        }
        pod_of(json!([container]))
    };
    check(
        network("nginx:1", json!({"tcpSocket": {"port": 80}})),
        &[(30, RUNS, "!Unhealthy")],
    );
    check(
        network("busybox:1", json!({"tcpSocket": {"port": 80}})),
        &[(15, again, "connect: connection refused")],
    );
    // A known server listens on its own port alone; other images tell nothing of theirs.
    check(
        network("nginx:1", json!({"tcpSocket": {"port": 8081}})),
        &[(15, again, "connect: connection refused")],
    );
    check(
        network("app:1", json!({"tcpSocket": {"port": 8081}})),
        &[(30, RUNS, "!Unhealthy")],
    );
    check(
        network("nginx:1", json!({"httpGet": {"path": "/", "port": 80}})),
        &[(30, RUNS, "!Unhealthy")],
    );
    check(
        network("busybox:1", json!({"httpGet": {"path": "/", "port": 80}})),
        &[(15, again, "a Unhealthy: Liveness probe failed: Get \"http://")],
    );
}

#[test]
fn startup() {
    let probed = |script: &str, probe: Value| pod(script, json!({"startupProbe": probe}));
    let failed = "a Unhealthy: Startup probe failed: cat: can't open '/tmp/ok'";
    let killed = "a Killing: Container a failed startup probe, will be restarted";
    let again = "Running ContainersNotReady a:runningx1";
    check(probed(NOW, each(json!({}))), &[(4, RUNS, "!Unhealthy")]);
    check(
        probed(LATE, each(json!({"failureThreshold": 20}))),
        &[(4, WAITS, failed), (10, RUNS, "!Killing")],
    );
    // It has not begun as long as nobody has asked.
    check(
        probed(NOW, each(json!({"initialDelaySeconds": 10}))),
        &[(9, WAITS, "!Unhealthy"), (14, RUNS, "!Unhealthy")],
    );
    check(
        probed(NEVER, each(json!({"failureThreshold": 8}))),
        &[(7, WAITS, failed), (14, again, killed)],
    );
    check(
        probed(LATE, each(json!({"periodSeconds": 4, "failureThreshold": 3}))),
        &[(3, WAITS, "a Started"), (14, RUNS, "!Killing")],
    );
    check(
        probed(NEVER, each(json!({"initialDelaySeconds": 8}))),
        &[(8, WAITS, "!Unhealthy"), (15, again, killed)],
    );
    // Three times in ten seconds each, where nothing else is said; the first time after ten, since nothing ran when the pod was added.
    let usual = json!({"exec": {"command": ["cat", "/tmp/ok"]}});
    check(
        probed(NEVER, usual.clone()),
        &[(19, WAITS, failed), (19, WAITS, "!Killing"), (36, again, killed)],
    );
    check(
        probed(LATE, usual),
        &[(9, WAITS, "!Unhealthy"), (15, RUNS, "!Unhealthy")],
    );
    // Once it has succeeded, it is not asked again.
    check(probed(GOES, each(json!({}))), &[(30, RUNS, "!Unhealthy")]);
    check(probed(FLAPS, each(json!({}))), &[(30, RUNS, "!Unhealthy")]);
    // But of the next run.
    check(
        probed(
            "sleep 3; touch /tmp/ok; sleep 5; exit 1",
            each(json!({"failureThreshold": 20})),
        ),
        &[
            (7, RUNS, failed),
            (11, again, failed),
            (17, "Running ready a:runningx1", failed),
        ],
    );
    check(
        probed(
            NOW,
            run(
                json!(["sh", "-c", "echo no; exit 3"]),
                json!({"failureThreshold": 20}),
            ),
        ),
        &[(5, WAITS, "a Unhealthy: Startup probe failed: no")],
    );
    check(
        probed(
            NOW,
            run(json!(["nothing-like-that"]), json!({"failureThreshold": 8})),
        ),
        &[(14, again, killed)],
    );
    // Before that nothing else is asked.
    let with_startup = |script: &str, other: &str, probe: Value| {
        pod(
            script,
            json!({"startupProbe": each(json!({"failureThreshold": 30})), other: probe}),
        )
    };
    let none = || run(json!(["false"]), json!({}));
    check(
        with_startup(LATE, "livenessProbe", none()),
        &[
            (5, WAITS, "!Liveness"),
            (12, "Running", "a Unhealthy: Liveness probe failed"),
        ],
    );
    check(
        with_startup(NEVER, "livenessProbe", none()),
        &[(25, WAITS, "!Liveness")],
    );
    check(
        with_startup(LATE, "readinessProbe", none()),
        &[
            (5, WAITS, "!Readiness"),
            (12, WAITS, "a Unhealthy: Readiness probe failed"),
        ],
    );
    check(
        with_startup(NEVER, "readinessProbe", run(json!(["true"]), json!({}))),
        &[(25, WAITS, "!Readiness")],
    );
    check(
        with_startup(LATE, "readinessProbe", run(json!(["true"]), json!({}))),
        &[(5, WAITS, failed), (10, RUNS, "!Readiness")],
    );
    // What does not listen is killed when its grace is over.
    let deaf = |probe: Value| {
        let spec = probed(DEAF, each(with(json!({"initialDelaySeconds": 5}), probe)));
        with(spec, json!({"terminationGracePeriodSeconds": 30}))
    };
    check(deaf(json!({})), &[(30, WAITS, killed), (44, again, killed)]);
    check(
        deaf(json!({"terminationGracePeriodSeconds": 3})),
        &[(8, WAITS, killed), (15, again, killed)],
    );
    // By the pod's policy; others go on.
    let slow = || each(json!({"failureThreshold": 6}));
    check(
        never_again(NEVER, json!({"startupProbe": slow()})),
        &[
            (5, WAITS, failed),
            (13, "Failed PodFailed a:terminated(Error ", failed),
        ],
    );
    check(
        with(probed(NEVER, slow()), json!({"restartPolicy": "OnFailure"})),
        &[(12, again, killed)],
    );
    let two = pod_of(json!([
        with(sh("a", NEVER), json!({"startupProbe": slow()})),
        sh("b", "sleep 600")
    ]));
    check(
        two,
        &[
            (5, "Running ContainersNotReady a:running b:running", failed),
            (12, "Running ContainersNotReady a:runningx1 b:running", killed),
        ],
    );
}

/// A probe for a page of a web server fails once the page is moved away.
#[test]
fn pages_of_web_servers() {
    const HTDOCS: &str = "/usr/local/apache2/htdocs";
    let page = |path: &str| json!({"readinessProbe": {"httpGet": {"path": path, "port": 80}, "periodSeconds": 1, "failureThreshold": 1}});
    let run = |script: String| json!({"exec": {"command": ["sh", "-c", script]}});
    let away = json!({"lifecycle": {"postStart": run(format!("mv {HTDOCS}/index.html /tmp/"))}});
    let back = json!({"livenessProbe": with(run(format!("mv /tmp/index.html {HTDOCS}/ || true")), json!({"initialDelaySeconds": 10}))});
    let missing = "a Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404";
    let server = |image: &str, more: &[&Value]| {
        let more = more.iter().map(|more| (*more).clone());
        pod_of(json!([more.fold(json!({"name": "a", "image": image}), with)]))
    };
    check(
        server("httpd:2.4", &[&page("/index.html")]),
        &[(5, RUNS, "!Unhealthy")],
    );
    check(
        server("httpd:2.4", &[&page("/index.html"), &away]),
        &[(5, WAITS, missing), (30, WAITS, missing)],
    );
    check(
        server("httpd:2.4", &[&page("/index.html"), &away, &back]),
        &[(8, WAITS, missing), (30, RUNS, missing)],
    );
    // Other paths are taken to be there, and so is everything that other programs serve.
    check(
        server("httpd:2.4", &[&page("/healthz"), &away]),
        &[(5, RUNS, "!Unhealthy")],
    );
    check(
        server("app:1", &[&page("/index.html"), &away]),
        &[(5, "Running ContainersNotReady", "FailedPostStartHook")],
    );
}
