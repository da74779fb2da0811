//! Rows of the needs of containers: parts of volumes, files of variables, users, settings of the kernel; and of the events when
//! they are killed.

use shared_json::{Value, json};

use crate::leaving_rows::Step::{Patch, Wait};
use crate::leaving_rows::{Step, play};
use crate::support::{sh, with};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = "/api/v1/namespaces/default/configmaps/c";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const POD: &str = "/api/v1/namespaces/default/pods/p";

const RUNS: &str = "Running ready a:running";
const ENDS: &str = "Failed PodFailed a:terminated(Error 4)";

fn map() -> (&'static str, Value) {
    (
        MAPS,
        json!({"metadata": {"name": "c"}, "data": {"j": "one", "k": "two"}}),
    )
}

#[track_caller]
fn check(spec: &Value, before: &[(&'static str, Value)], steps: &[Step], status: &str, said: &str) {
    let (found, events) = play(spec, before, steps);
    assert_eq!(found, status, "{spec} {events:#?}");
    assert!(
        events.iter().any(|event| event.contains(said)),
        "{spec}: {said}: {events:#?}"
    );
}

/// Ends with 4 as soon as the test is true.
fn until(test: &str, volume: Value, mount: Value) -> Value {
    let script = format!("while true; do {test} && exit 4; sleep 1; done");
    json!({
        "restartPolicy": "Never", "volumes": [with(json!({"name": "v"}), volume)],
        "containers": [with(sh("a", &script), json!({"volumeMounts": [with(json!({"name": "v"}), mount)]}))],
    })
}

#[test]
fn parts_of_volumes() {
    let of = |test: &str, part: &str| {
        until(
            test,
            json!({"configMap": {"name": "c"}}),
            json!({"mountPath": "/etc/x/own", "subPath": part}),
        )
    };
    let seconds = [Wait(6)];
    let rows = [
        ("grep one /etc/x/own", "j", ENDS),
        ("grep two /etc/x/own", "k", ENDS),
        ("grep two /etc/x/own", "j", RUNS),
        ("test -f /etc/x/own", "j", ENDS),
        ("test -e /etc/x/own/j", "j", RUNS),
        ("grep one /etc/x/own/j", "", ENDS),
        // What is not there becomes a directory.
        ("test -d /etc/x/own", "none", ENDS),
        ("test -d /etc/x/own", "none/below/", ENDS),
    ];
    for (test, part, expected) in rows {
        check(&of(test, part), &[map()], &seconds, expected, "a Started");
    }
    // Two containers see two parts of one volume, a third all of it.
    let mount = |path: &str, part: &str| json!([{"name": "v", "mountPath": path, "subPath": part}]);
    let writes = |name: &str| {
        with(
            sh(name, "echo x > /d/f"),
            json!({"volumeMounts": mount("/d", name)}),
        )
    };
    let spec = json!({
        "restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [writes("i"), writes("j")],
        "containers": [with(sh("a", "test -s /all/i/f && test -s /all/j/f && exit 4"), json!({"volumeMounts": mount("/all", "")}))],
    });
    let after = "i:terminated(Completed 0) j:terminated(Completed 0)";
    check(
        &spec,
        &[],
        &[Wait(12)],
        &format!("Failed PodFailed {after} a:terminated(Error 4)"),
        "a Started",
    );
    let named = |expression: &str| {
        let mut spec = until(
            "grep x /all/p/f",
            json!({"emptyDir": {}}),
            json!({"mountPath": "/own", "subPathExpr": expression}),
        );
        let container = &mut spec["containers"][0];
        container["env"] = json!([{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "NONE"}]);
        container["volumeMounts"] = json!([container["volumeMounts"][0], {"name": "v", "mountPath": "/all"}]);
        container["command"][2] = json!("echo x > /own/f; grep x /all/p/f && exit 4; sleep 600");
        spec
    };
    check(&named("$(POD)"), &[], &seconds, ENDS, "a Started");
    check(&named("x$(POD)"), &[], &seconds, RUNS, "a Started");
    let fails = "Pending ContainersNotReady a:waiting(CreateContainerConfigError)";
    check(
        &named("$(OTHER)/$(NONE)"),
        &[],
        &seconds,
        fails,
        "a Failed: Error: missing value for NONE, OTHER",
    );
}

#[test]
fn what_changes_is_seen() {
    let patch = |data: Value| Patch(MAP, json!({"data": data}));
    let maps = json!({"configMap": {"name": "c"}});
    let whole = json!({"mountPath": "/v"});
    let spec = |test: &str| until(test, maps.clone(), whole.clone());
    let changed = [Wait(5), patch(json!({"j": "three"})), Wait(20)];
    let seen = [Wait(5), patch(json!({"j": "three"})), Wait(95)];
    check(&spec("grep three /v/j"), &[map()], &changed, RUNS, "a Started");
    check(&spec("grep three /v/j"), &[map()], &seen, ENDS, "a Started");
    let added = [Wait(5), patch(json!({"new": "four", "k": null})), Wait(95)];
    check(&spec("grep four /v/new"), &[map()], &added, ENDS, "a Started");
    check(&spec("test ! -e /v/k"), &[map()], &added, ENDS, "a Started");
    // A part of it stays as it was.
    let part = json!({"mountPath": "/v/j", "subPath": "j"});
    check(
        &until("grep three /v/j", maps.clone(), part),
        &[map()],
        &seen,
        RUNS,
        "a Started",
    );
    let item = json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}});
    check(
        &until("grep three /v/p", item, whole.clone()),
        &[map()],
        &seen,
        RUNS,
        "a Started",
    );
    let secret = (
        SECRETS,
        json!({"metadata": {"name": "c"}, "stringData": {"j": "one"}}),
    );
    let told = Patch(
        "/api/v1/namespaces/default/secrets/c",
        json!({"stringData": {"j": "three"}}),
    );
    check(
        &until(
            "grep three /v/j",
            json!({"secret": {"secretName": "c"}}),
            whole.clone(),
        ),
        &[secret],
        &[Wait(5), told, Wait(95)],
        ENDS,
        "a Started",
    );
    let projected = json!({"projected": {"sources": [{"configMap": {"name": "c"}}]}});
    check(
        &until("grep three /v/j", projected, whole.clone()),
        &[map()],
        &seen,
        ENDS,
        "a Started",
    );
    // What it knows of its own pod it sees at once.
    let own =
        json!({"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}});
    let label = Patch(POD, json!({"metadata": {"labels": {"app": "new"}}}));
    check(
        &until("grep new /v/l", own, whole),
        &[],
        &[Wait(5), label, Wait(6)],
        ENDS,
        "a Started",
    );
}

#[test]
fn variables() {
    let of = |file: &str, reference: Value, test: &str| {
        let reference = with(json!({"volumeName": "v", "path": "e", "key": "A"}), reference);
        let writes = sh("i", &format!("echo \"{file}\" > /v/e"));
        json!({
            "restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}],
            "initContainers": [with(writes, json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))],
            "containers": [with(sh("a", &format!("{test} && exit 4; sleep 600")), json!({"env": [{"name": "X", "valueFrom": {"fileKeyRef": reference}}]}))],
        })
    };
    let first = "i:terminated(Completed 0)";
    let ends = format!("Failed PodFailed {first} a:terminated(Error 4)");
    let runs = format!("Running ready {first} a:running");
    let fails = format!("Pending ContainersNotReady {first} a:waiting(CreateContainerConfigError)");
    let seconds = [Wait(9)];
    check(
        &of("A='1'", json!({}), "test \"$X\" = 1"),
        &[],
        &seconds,
        &ends,
        "a Started",
    );
    check(
        &of("B='1'", json!({"key": "B"}), "test \"$X\" = 1"),
        &[],
        &seconds,
        &ends,
        "a Started",
    );
    let missing = "a Failed: Error: environment variable key \"A\" not found in file \"/var/lib/kubelet/pods/UID/volumes/kubernetes.io~empty-dir/v/e\"";
    // What went wrong is shown with the next try.
    let next = [Wait(25)];
    check(&of("B='1'", json!({}), "true"), &[], &next, &fails, missing);
    check(
        &of("B='1'", json!({"optional": true}), "test \"$X\" = 1"),
        &[],
        &seconds,
        &runs,
        "a Started",
    );
    check(
        &of("A=1", json!({}), "true"),
        &[],
        &next,
        &fails,
        "a Failed: Error: couldn't parse env file",
    );
    check(
        &of("A='1'", json!({"path": "none"}), "true"),
        &[],
        &next,
        &fails,
        "couldn't parse env file",
    );
    // Services leave no trace.
    let script = "test -z \"$KUBERNETES_SERVICE_HOST\" && exit 4; sleep 600";
    let links = json!({"restartPolicy": "Never", "containers": [sh("a", script)]});
    check(&links, &[], &[Wait(5)], ENDS, "a Started");
    // Commands and arguments.
    let command = |command: Value| {
        let container = json!({"name": "a", "image": "busybox:1", "command": command, "env": [{"name": "X", "value": "4"}]});
        json!({"restartPolicy": "Never", "containers": [container]})
    };
    check(
        &command(json!(["sh", "-c", "exit $(X)"])),
        &[],
        &[Wait(5)],
        ENDS,
        "a Started",
    );
    check(
        &command(json!(["sh", "-c", "test '$$(X)' = '$''(X)' && exit 4"])),
        &[],
        &[Wait(5)],
        ENDS,
        "a Started",
    );
    check(
        &command(json!(["sh", "-c", "test '$(Y)' = '$''(Y)' && exit 4"])),
        &[],
        &[Wait(5)],
        ENDS,
        "a Started",
    );
}

#[test]
fn what_a_node_does_not_allow() {
    let context = |context: Value| json!({"securityContext": context, "containers": [sh("a", "sleep 600")]});
    let seconds = [Wait(5)];
    check(
        &context(json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
        &[],
        &seconds,
        "Failed SysctlForbidden",
        "- SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted",
    );
    check(
        &context(json!({"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]})),
        &[],
        &seconds,
        RUNS,
        "a Started",
    );
    let fails = "Pending ContainersNotReady a:waiting(CreateContainerConfigError)";
    check(
        &context(json!({"runAsNonRoot": true, "runAsUser": 0})),
        &[],
        &seconds,
        fails,
        "a Failed: Error: container's runAsUser breaks non-root policy (pod: \"p_default(UID)\", container: a)",
    );
    check(
        &context(json!({"runAsNonRoot": true, "runAsUser": 1000})),
        &[],
        &seconds,
        RUNS,
        "a Started",
    );
    let secrets = |names: Value| json!({"imagePullSecrets": names, "containers": [sh("a", "sleep 600")]});
    let told = "- FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (x, y); attempting to pull the image may not succeed.";
    check(
        &secrets(json!([{"name": "x"}, {"name": "y"}])),
        &[],
        &seconds,
        RUNS,
        told,
    );
    let secret = (
        SECRETS,
        json!({"metadata": {"name": "x"}, "stringData": {"j": "one"}}),
    );
    check(
        &secrets(json!([{"name": "x"}, {"name": "y"}])),
        &[secret],
        &seconds,
        RUNS,
        "pull secrets (y); ",
    );
}

#[test]
fn why_containers_are_killed() {
    let fails = json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1});
    let probed = |name: &str, probe: &str| {
        with(
            sh(name, "trap exit TERM; while true; do sleep 1; done"),
            json!({probe: fails}),
        )
    };
    let of = |policy: &str, containers: Value| json!({"restartPolicy": policy, "containers": containers});
    let quiet = sh("b", "sleep 600");
    let never = |container: Value| with(container, json!({"restartPolicy": "Never"}));
    let rows = [
        (
            of("Always", json!([probed("a", "livenessProbe")])),
            "a Killing: Container a failed liveness probe, will be restarted",
        ),
        (
            of("OnFailure", json!([probed("a", "startupProbe")])),
            "a Killing: Container a failed startup probe, will be restarted",
        ),
        (
            of("Never", json!([probed("a", "livenessProbe"), quiet])),
            "a Killing: Container a failed liveness probe",
        ),
        (
            of("Always", json!([never(probed("a", "startupProbe")), quiet])),
            "a Killing: Container a failed startup probe",
        ),
        // With the last one the pod ends.
        (
            of("Never", json!([probed("a", "livenessProbe")])),
            "a Killing: Stopping container a",
        ),
        (
            of("Always", json!([never(probed("a", "livenessProbe"))])),
            "a Killing: Stopping container a",
        ),
    ];
    for (spec, said) in rows {
        let (_, events) = play(&spec, &[], &[Wait(5)]);
        let found = events
            .iter()
            .find(|event| event.contains("Killing"))
            .map(|event| event.split(" x").next().unwrap_or_default());
        assert_eq!(found, Some(said), "{spec}: {events:#?}");
    }
    for probe in ["livenessProbe", "startupProbe"] {
        let sidecar = with(probed("s", probe), json!({"restartPolicy": "Always"}));
        let spec = json!({"initContainers": [sidecar], "containers": [quiet]});
        let (_, events) = play(&spec, &[], &[Wait(5)]);
        let said = format!(
            "s Killing: Init container s failed {} probe",
            probe.trim_end_matches("Probe")
        );
        assert!(
            events
                .iter()
                .any(|event| event.split(" x").next() == Some(said.as_str())),
            "{spec}: {events:#?}"
        );
    }
    let again = Patch(
        POD,
        json!({"spec": {"initContainers": [{"name": "s", "image": "busybox:2"}]}}),
    );
    let sidecar = with(sh("s", "sleep 600"), json!({"restartPolicy": "Always"}));
    check(
        &json!({"terminationGracePeriodSeconds": 1, "initContainers": [sidecar], "containers": [quiet]}),
        &[],
        &[Wait(5), again, Wait(8)],
        "Running ready s:runningx1 b:running",
        "s Killing: Init container s definition changed",
    );
}

/// A container that is not ready is asked when its node looks at its pod, however long its period is.
#[test]
fn readiness_is_not_waited_for() {
    let probed = |probe: Value| {
        let probe = with(json!({"exec": {"command": ["true"]}, "periodSeconds": 60}), probe);
        json!({"containers": [with(sh("a", "sleep 600"), json!({"readinessProbe": probe}))]})
    };
    let unready = "Running ContainersNotReady a:running";
    check(&probed(json!({})), &[], &[Wait(4)], RUNS, "a Started");
    check(
        &probed(json!({"successThreshold": 2})),
        &[],
        &[Wait(30)],
        unready,
        "a Started",
    );
    check(
        &probed(json!({"successThreshold": 2})),
        &[],
        &[Wait(70)],
        RUNS,
        "a Started",
    );
    check(
        &probed(json!({"initialDelaySeconds": 10})),
        &[],
        &[Wait(8)],
        unready,
        "a Started",
    );
}
