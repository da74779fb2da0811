//! Rows of lives: a pod, so many seconds, its status then, and an event of its kubelet by then.

use shared_json::{Value, json};

use crate::lives;

/// The pod is an object of its spec; its containers run `busybox:1` where they name no image.
fn check(spec: Value, seconds: u64, status: &str, said: &str) {
    let mut spec = spec;
    for list in ["initContainers", "containers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if container.get("image").is_none() {
                container["image"] = json!("busybox:1");
            }
        }
    }
    lives::tells(spec, seconds, status, said);
}

fn sh(name: &str, script: &str) -> Value {
    json!({"name": name, "command": ["sh", "-c", script]})
}

fn with(mut container: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        container[key] = value.clone();
    }
    container
}

fn of(policy: &str, containers: Value) -> Value {
    json!({"restartPolicy": policy, "containers": containers})
}

#[test]
fn several_containers() {
    let forever = sh("b", "sleep 600");
    check(
        of("Never", json!([sh("a", "true"), forever])),
        5,
        "Running ContainersNotReady a:terminated(Completed 0) b:running",
        "a Started",
    );
    check(
        of("Never", json!([sh("a", "exit 2"), forever])),
        5,
        "Running ContainersNotReady a:terminated(Error 2) b:running",
        "b Started",
    );
    check(
        of("Never", json!([sh("a", "true"), sh("b", "true")])),
        5,
        "Succeeded PodCompleted a:terminated(Completed 0) b:terminated(Completed 0)",
        "b Started",
    );
    check(
        of("Never", json!([sh("a", "true"), sh("b", "exit 7")])),
        5,
        "Failed PodFailed a:terminated(Completed 0) b:terminated(Error 7)",
        "b Started",
    );
    check(
        of("OnFailure", json!([sh("a", "true"), forever])),
        5,
        "Running ContainersNotReady a:terminated(Completed 0) b:running",
        "a Started",
    );
    check(
        of("OnFailure", json!([sh("a", "sleep 1; exit 1"), forever])),
        6,
        "Running ContainersNotReady a:terminated(Error 1)x1 b:running",
        "a BackOff: Back-off restarting failed container a",
    );
    check(
        of(
            "Always",
            json!([forever, with(sh("c", ""), json!({"image": "missing:1"}))]),
        ),
        5,
        "Pending ContainersNotReady b:running c:waiting(ImagePullBackOff)",
        "c Failed: Error: ErrImagePull",
    );
}

/// Images and commands that the node does not know: they end well in a pod that is to end, and serve otherwise.
#[test]
fn unknown_programs() {
    let certgen = json!([{"name": "a", "image": "registry.example.com/certgen:1", "args": ["create"]}]);
    let done = "Succeeded PodCompleted a:terminated(Completed 0)";
    check(of("Never", certgen.clone()), 3, done, "a Started");
    check(of("OnFailure", certgen.clone()), 3, done, "a Started");
    check(
        of("Always", certgen.clone()),
        3,
        "Running ready a:running",
        "a Started",
    );
    let server = json!([{"name": "a", "image": "nginx:1"}]);
    check(of("Never", server), 3, "Running ready a:running", "a Started");
    let two =
        json!([{"name": "a", "image": "app:1"}, {"name": "b", "image": "app:1", "command": ["/migrate"]}]);
    check(
        of("Never", two),
        3,
        "Succeeded PodCompleted a:terminated(Completed 0) b:terminated(Completed 0)",
        "b Started",
    );
    let sidecar = json!({
        "restartPolicy": "Never", "containers": certgen,
        "initContainers": [{"name": "s", "image": "app:1", "restartPolicy": "Always"}],
    });
    check(
        sidecar,
        4,
        "Succeeded PodCompleted s:terminated(Completed 0) a:terminated(Completed 0)",
        "s Started",
    );
}

#[test]
fn rules_of_single_containers() {
    let rules = |policy: &str, values: Value, script: &str| {
        let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": values}});
        with(
            sh("a", script),
            json!({"restartPolicy": policy, "restartPolicyRules": [rule]}),
        )
    };
    check(
        of(
            "Never",
            json!([
                rules("Never", json!([42]), "sleep 1; exit 42"),
                sh("b", "sleep 600")
            ]),
        ),
        6,
        "Running ContainersNotReady a:terminated(Error 42)x1 b:running",
        "a BackOff",
    );
    check(
        of("Never", json!([rules("Never", json!([42]), "exit 1")])),
        5,
        "Failed PodFailed a:terminated(Error 1)",
        "a Started",
    );
    check(
        of(
            "Never",
            json!([
                with(sh("a", "sleep 1; exit 1"), json!({"restartPolicy": "OnFailure"})),
                sh("b", "sleep 600")
            ]),
        ),
        6,
        "Running ContainersNotReady a:terminated(Error 1)x1 b:running",
        "a BackOff",
    );
    check(
        of(
            "Always",
            json!([
                with(sh("a", "exit 1"), json!({"restartPolicy": "Never"})),
                sh("b", "sleep 600")
            ]),
        ),
        5,
        "Running ContainersNotReady a:terminated(Error 1) b:running",
        "a Started",
    );
    check(
        of(
            "Always",
            json!([
                with(sh("a", "true"), json!({"restartPolicy": "OnFailure"})),
                sh("b", "sleep 600")
            ]),
        ),
        5,
        "Running ContainersNotReady a:terminated(Completed 0) b:running",
        "a Started",
    );
    // What must run first and never runs again lets the pod fail, whatever the pod's own policy.
    for policy in ["Always", "OnFailure", "Never"] {
        let mut spec = of(policy, json!([sh("a", "sleep 600")]));
        spec["initContainers"] = json!([with(sh("i", "exit 1"), json!({"restartPolicy": "Never"}))]);
        check(
            spec,
            6,
            "Failed PodFailed i:terminated(Error 1) a:waiting(PodInitializing)",
            "i Started",
        );
    }
    for policy in ["Always", "Never"] {
        let mut spec = of(policy, json!([sh("a", "sleep 600")]));
        spec["initContainers"] = json!([with(sh("i", "exit 1"), json!({"restartPolicy": "OnFailure"}))]);
        check(
            spec,
            6,
            "Pending ContainersNotReady i:terminated(Error 1)x1 a:waiting(PodInitializing)",
            "i BackOff",
        );
    }
}

#[test]
fn probes_by_their_fields() {
    let probed = |name: &str, probe: Value, script: &str| {
        let probe = with(probe, json!({"exec": {"command": ["cat", "/tmp/ok"]}}));
        json!({"terminationGracePeriodSeconds": 1, "containers": [with(sh("a", script), json!({name: probe}))]})
    };
    let late = "sleep 5; touch /tmp/ok; sleep 600";
    let now = "touch /tmp/ok; sleep 600";
    let each = |more: Value| with(json!({"periodSeconds": 1, "failureThreshold": 2}), more);
    let failed = "a Unhealthy: Readiness probe failed";
    check(
        probed("readinessProbe", each(json!({})), late),
        4,
        "Running ContainersNotReady a:running",
        failed,
    );
    check(
        probed("readinessProbe", each(json!({})), late),
        9,
        "Running ready a:running",
        failed,
    );
    check(
        probed("readinessProbe", each(json!({"successThreshold": 5})), now),
        4,
        "Running ContainersNotReady a:running",
        "a Started",
    );
    check(
        probed("readinessProbe", each(json!({"successThreshold": 5})), now),
        10,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed("readinessProbe", each(json!({"initialDelaySeconds": 6})), now),
        5,
        "Running ContainersNotReady a:running",
        "a Started",
    );
    check(
        probed("readinessProbe", each(json!({"initialDelaySeconds": 6})), now),
        12,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed(
            "livenessProbe",
            each(json!({"initialDelaySeconds": 20})),
            "sleep 600",
        ),
        15,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed("livenessProbe", each(json!({})), now),
        15,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed(
            "livenessProbe",
            each(json!({"failureThreshold": 30})),
            "sleep 600",
        ),
        15,
        "Running ready a:running",
        "a Unhealthy: Liveness probe failed",
    );
    check(
        probed(
            "livenessProbe",
            json!({"periodSeconds": 5, "failureThreshold": 1}),
            "sleep 600",
        ),
        9,
        "Running ready a:runningx1",
        "a Killing: Container a failed liveness probe, will be restarted",
    );
    check(
        probed("startupProbe", each(json!({"failureThreshold": 20})), late),
        4,
        "Running ContainersNotReady a:running",
        "a Unhealthy: Startup probe failed",
    );
    check(
        probed("startupProbe", each(json!({"failureThreshold": 20})), late),
        9,
        "Running ready a:running",
        "a Unhealthy: Startup probe failed",
    );
    check(
        probed(
            "startupProbe",
            json!({"periodSeconds": 3, "failureThreshold": 1}),
            "sleep 600",
        ),
        7,
        "Running ContainersNotReady a:runningx1",
        "a Killing: Container a failed startup probe, will be restarted",
    );
    // As long as the startup probe has not succeeded, nothing else is asked.
    let mut both = probed("startupProbe", each(json!({"failureThreshold": 60})), "sleep 600");
    both["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1});
    check(
        both,
        12,
        "Running ContainersNotReady a:running",
        "a Unhealthy: Startup probe failed",
    );
}

#[test]
fn probes_over_the_network() {
    let probed = |image: &str, probe: Value| {
        let mut container =
            json!({"name": "a", "image": image, "readinessProbe": with(probe, json!({"periodSeconds": 1}))});
        if image == "busybox:1" {
            container["command"] = json!(["sleep", "600"]);
        }
        json!({"containers": [container]})
    };
    let http = json!({"httpGet": {"path": "/", "port": 80}});
    check(
        probed("nginx:1", http.clone()),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed("busybox:1", http),
        4,
        "Running ContainersNotReady a:running",
        "connect: connection refused",
    );
    let tcp = json!({"tcpSocket": {"port": 80}});
    check(
        probed("nginx:1", tcp.clone()),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        probed("busybox:1", tcp),
        4,
        "Running ContainersNotReady a:running",
        "connect: connection refused",
    );
    check(
        probed("app:1", json!({"grpc": {"port": 9000}})),
        4,
        "Running ready a:running",
        "a Started",
    );
}

#[test]
fn init_containers_and_sidecars_in_turn() {
    let spec = |init: Value| json!({"initContainers": init, "containers": [sh("a", "sleep 600")]});
    let waits = "a:waiting(PodInitializing)";
    let second = [sh("i", "sleep 2"), sh("j", "sleep 3")];
    check(
        spec(json!(second)),
        3,
        &format!("Pending ContainersNotReady i:running j:waiting(PodInitializing) {waits}"),
        "i Started",
    );
    check(
        spec(json!(second)),
        6,
        &format!("Pending ContainersNotReady i:terminated(Completed 0) j:running {waits}"),
        "j Started",
    );
    check(
        spec(json!(second)),
        12,
        "Running ready i:terminated(Completed 0) j:terminated(Completed 0) a:running",
        "a Started",
    );
    let sidecar = |more: Value| {
        with(
            sh("s", "sleep 4; touch /tmp/ok; sleep 600"),
            with(json!({"restartPolicy": "Always"}), more),
        )
    };
    let startup = json!({"startupProbe": {"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 20}});
    check(
        spec(json!([sidecar(startup.clone())])),
        4,
        &format!("Pending ContainersNotReady s:running {waits}"),
        "s Unhealthy: Startup probe failed",
    );
    check(
        spec(json!([sidecar(startup)])),
        10,
        "Running ready s:running a:running",
        "a Started",
    );
    let readiness = json!({"readinessProbe": {"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1}});
    check(
        spec(json!([sidecar(readiness.clone())])),
        4,
        "Running ContainersNotReady s:running a:running",
        "s Unhealthy: Readiness probe failed",
    );
    check(
        spec(json!([sidecar(readiness)])),
        10,
        "Running ready s:running a:running",
        "a Started",
    );
    let ends = with(sh("s", "sleep 2; exit 1"), json!({"restartPolicy": "Always"}));
    check(
        spec(json!([ends])),
        7,
        "Running ContainersNotReady s:terminated(Error 1)x1 a:running",
        "s BackOff",
    );
    check(
        spec(json!([with(sh("i", "true"), json!({"image": "missing:1"}))])),
        4,
        &format!("Pending ContainersNotReady i:waiting(ErrImagePull) {waits}"),
        "i Failed: Error: ErrImagePull",
    );
}

#[test]
fn what_is_asked_of_configuration() {
    let env = |source: Value| json!({"containers": [with(sh("a", "sleep 600"), json!({"env": [{"name": "X", "valueFrom": source}]}))]});
    let from =
        |source: Value| json!({"containers": [with(sh("a", "sleep 600"), json!({"envFrom": [source]}))]});
    let config_error = "Pending ContainersNotReady a:waiting(CreateContainerConfigError)";
    let key = |optional: bool| json!({"name": "none", "key": "k", "optional": optional});
    check(
        env(json!({"configMapKeyRef": key(false)})),
        4,
        config_error,
        "a Failed: Error: configmap \"none\" not found",
    );
    check(
        env(json!({"secretKeyRef": key(false)})),
        4,
        config_error,
        "a Failed: Error: secret \"none\" not found",
    );
    check(
        env(json!({"configMapKeyRef": key(true)})),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        env(json!({"secretKeyRef": key(true)})),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        from(json!({"configMapRef": {"name": "none"}})),
        4,
        config_error,
        "a Failed: Error: configmap \"none\" not found",
    );
    check(
        from(json!({"secretRef": {"name": "none"}})),
        4,
        config_error,
        "a Failed: Error: secret \"none\" not found",
    );
    check(
        from(json!({"configMapRef": {"name": "none", "optional": true}})),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        env(json!({"fieldRef": {"fieldPath": "metadata.name"}})),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        env(json!({"resourceFieldRef": {"resource": "limits.cpu"}})),
        4,
        "Running ready a:running",
        "a Started",
    );
}

#[test]
fn hooks_and_deadlines() {
    let hooked = |hooks: Value| json!({"terminationGracePeriodSeconds": 2, "containers": [with(sh("a", "sleep 600"), json!({"lifecycle": hooks}))]});
    check(
        hooked(json!({"postStart": {"exec": {"command": ["true"]}}})),
        4,
        "Running ready a:running",
        "a Started",
    );
    check(
        hooked(json!({"postStart": {"sleep": {"seconds": 1}}})),
        6,
        "Running ready a:running",
        "a Started",
    );
    // The command of a hook dies with the container's program.
    check(
        json!({"containers": [with(sh("a", "sleep 1"), json!({"lifecycle": {"postStart": {"exec": {"command": ["sleep", "30"]}}}}))]}),
        4,
        "Running ContainersNotReady a:waiting(PostStartHookError)",
        "a FailedPostStartHook: PostStartHook failed",
    );
    let mut limited = of("Never", json!([sh("a", "sleep 600")]));
    limited["activeDeadlineSeconds"] = json!(4);
    limited["terminationGracePeriodSeconds"] = json!(1);
    check(limited.clone(), 3, "Running ready a:running", "a Started");
    check(
        limited.clone(),
        10,
        "Failed PodFailed DeadlineExceeded a:terminated(Error 137)",
        "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
    );
    limited["initContainers"] = json!([sh("i", "sleep 600")]);
    check(
        limited,
        10,
        "Failed PodFailed DeadlineExceeded i:terminated(Error 137) a:waiting(PodInitializing)",
        "DeadlineExceeded",
    );
}
