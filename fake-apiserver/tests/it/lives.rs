//! Lives of pods: the status and the events from a kubelet after some time, a row each.

use std::time::Duration;

use client_kit::Credential;
use fake_apiserver::Cluster;
use fake_apiserver::nodes::Image;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The actions on the pod, and their times in seconds.
#[derive(Clone, Default)]
pub(crate) struct Life {
    pub(crate) spec: Value,
    pub(crate) annotations: Value,
    /// Seconds until the status is looked at.
    pub(crate) seconds: u64,
    /// Deleted at that time, and looked at so many seconds later.
    pub(crate) deleted: Option<u64>,
    /// Objects that are there before the pod, by path.
    pub(crate) before: Vec<(&'static str, Value)>,
    /// Objects that are made after some seconds.
    pub(crate) later: Vec<(u64, &'static str, Value)>,
    /// Patched (strategic merge, of the pod or a subresource) after some seconds.
    pub(crate) patch: Option<(u64, &'static str, Value)>,
}

/// An image that is pulled as `u` with the password `p` alone.
pub(crate) const PRIVATE: &str = "private.example.com/a:1";

/// Lives with this spec for so many seconds: its status then, and something that its kubelet has said by then.
#[track_caller]
pub(crate) fn tells(spec: Value, seconds: u64, status: &str, said: &str) {
    let (found, events) = live(Life {
        spec: spec.clone(),
        seconds,
        ..Life::default()
    });
    assert_eq!(found, status, "{spec} {events:#?}");
    assert!(
        events.iter().any(|event| event.contains(said)),
        "{spec}: {said}: {events:#?}"
    );
}

/// Lives it; gives the status in short, and the kubelet's events in the order in which each was first seen.
pub(crate) fn live(life: Life) -> (String, Vec<String>) {
    let mut result = None;
    let slot = &mut result;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        cluster.images().set("missing:1", Image::missing("missing:1"));
        let busy = Image::remote("busy:1", Duration::from_millis(500)).with_failures(2);
        cluster.images().set("busy:1", busy);
        let credential = Credential {
            username: "u".to_owned(),
            password: "p".to_owned(),
        };
        let private = Image::remote(PRIVATE, Duration::from_millis(500)).with_credential(credential);
        cluster.images().set(PRIVATE, private);
        cluster
            .images()
            .set("slow:1", Image::remote("slow:1", Duration::from_secs(2)));
        for (path, object) in &life.before {
            let (code, answer) = request(&cluster, "POST", path, object).await;
            assert_eq!(code, 201, "{answer}");
        }
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "annotations": life.annotations}, "spec": life.spec,
        });
        let (code, answer) = request(&cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201, "{answer}");
        let mut passed = 0;
        let mut until = Vec::new();
        for (at, path, object) in life.later {
            until.push((at, path.to_owned(), "", object));
        }
        if let Some((at, subresource, patch)) = life.patch {
            until.push((
                at,
                format!("{PODS}/p{subresource}"),
                "application/strategic-merge-patch+json",
                patch,
            ));
        }
        for (at, path, kind, body) in until {
            cluster.run_for(Duration::from_secs(at - passed)).await;
            passed = at;
            let (code, answer) = if kind.is_empty() {
                request(&cluster, "POST", &path, &body).await
            } else {
                send(&cluster, "PATCH", &path, kind, &body).await
            };
            assert!(code < 300, "{answer}");
        }
        cluster.run_for(Duration::from_secs(life.seconds - passed)).await;
        if let Some(after) = life.deleted {
            request(&cluster, "DELETE", &format!("{PODS}/p"), &Value::Null).await;
            cluster.run_for(Duration::from_millis(after * 1000)).await;
        }
        let (code, pod) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let status = if code == 404 {
            "gone".to_owned()
        } else {
            short(&pod)
        };
        let (_, events) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        *slot = Some((status, said(&events)));
    });
    result.expect("a life")
}

/// `Running ready web:running web2:terminated(Error 3) restarts=1 …`.
pub(crate) fn short(pod: &Value) -> String {
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).map_or_else(String::new, |found| {
            found.as_str().map_or_else(|| found.to_string(), str::to_owned)
        })
    };
    let mut out = vec![text(pod, "/status/phase")];
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    if let Some(ready) = ready {
        let reason = text(ready, "/reason");
        out.push(if ready["status"] == "True" {
            "ready".to_owned()
        } else {
            reason
        });
    }
    out.extend(Some(text(pod, "/status/reason")).filter(|text| !text.is_empty()));
    let resizing = conditions
        .into_iter()
        .flatten()
        .map(|condition| text(condition, "/type"));
    out.extend(resizing.filter(|kind| kind.starts_with("PodResize")));
    for list in [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for status in pod["status"][list].as_array().into_iter().flatten() {
            let state = status["state"].as_object().and_then(|state| state.iter().next());
            let (word, detail) = state.map_or((String::new(), Value::Null), |(word, detail)| {
                (word.to_string(), detail.clone())
            });
            let mut line = format!("{}:{word}", text(status, "/name"));
            let reason = text(&detail, "/reason");
            if !reason.is_empty() {
                line = format!(
                    "{line}({reason}{})",
                    detail
                        .get("exitCode")
                        .map_or_else(String::new, |code| format!(" {code}"))
                );
            }
            if status["restartCount"] != 0 {
                line = format!("{line}x{}", status["restartCount"]);
            }
            out.push(line);
        }
    }
    out.join(" ")
}

pub(crate) fn said(events: &Value) -> Vec<String> {
    let mut items: Vec<&Value> = events["items"].as_array().into_iter().flatten().collect();
    items.retain(|event| event["source"]["component"] == "kubelet");
    // The names of events end in the time at which they were made.
    items.sort_by_key(|event| event["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    items
        .into_iter()
        .map(|event| {
            let count = event["count"].as_i64().unwrap_or(1);
            let place = event["involvedObject"]["fieldPath"].as_str().unwrap_or_default();
            let name = place.split(['{', '}']).nth(1).unwrap_or("-");
            let message = event["message"].as_str().unwrap_or_default();
            let message = match event["involvedObject"]["uid"].as_str() {
                Some(uid) => message.replace(uid, "UID"),
                None => message.to_owned(),
            };
            let times = if count > 1 {
                format!(" x{count}")
            } else {
                String::new()
            };
            format!(
                "{name} {}: {message}{times}",
                event["reason"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

const BEGUN: [&str; 3] = [
    "a Pulled: Container image \"busybox:1\" already present on machine and can be accessed by the pod",
    "a Created: Container created",
    "a Started: Container started",
];

fn container(script: &str) -> Value {
    json!({"name": "a", "image": "busybox:1", "command": ["sh", "-c", script]})
}

fn pod(policy: &str, container: Value) -> Value {
    json!({"restartPolicy": policy, "containers": [container]})
}

#[track_caller]
fn check(life: Life, status: &str, events: &[&str]) {
    let (got, said) = live(life);
    assert_eq!(got, status, "{said:#?}");
    assert_eq!(said, events);
}

fn plain(spec: Value, seconds: u64) -> Life {
    Life {
        spec,
        seconds,
        ..Life::default()
    }
}

fn times(lines: [&str; 3], count: u32) -> Vec<String> {
    lines.iter().map(|line| format!("{line} x{count}")).collect()
}

fn with(lines: &[String], more: &[&str]) -> Vec<String> {
    lines
        .iter()
        .cloned()
        .chain(more.iter().map(|line| (*line).to_owned()))
        .collect()
}

#[track_caller]
fn check_owned(life: Life, status: &str, events: &[String]) {
    let (got, said) = live(life);
    assert_eq!(got, status, "{said:#?}");
    assert_eq!(said, events);
}

#[test]
fn containers_that_end() {
    check(
        plain(pod("Never", container("sleep 1; exit 0")), 5),
        "Succeeded PodCompleted a:terminated(Completed 0)",
        &BEGUN,
    );
    check(
        plain(pod("Never", container("exit 3")), 5),
        "Failed PodFailed a:terminated(Error 3)",
        &BEGUN,
    );
    check(
        plain(pod("OnFailure", container("true")), 5),
        "Succeeded PodCompleted a:terminated(Completed 0)",
        &BEGUN,
    );
    check(
        plain(pod("Always", container("sleep 60")), 10),
        "Running ready a:running",
        &BEGUN,
    );
    let back_off = "a BackOff: Back-off restarting failed container a in pod p_default(UID)";
    check_owned(
        plain(pod("Always", container("exit 3")), 5),
        "Running ContainersNotReady a:terminated(Error 3)x1",
        &with(&times(BEGUN, 2), &[back_off]),
    );
    check_owned(
        plain(pod("OnFailure", container("sleep 1; exit 1")), 8),
        "Running ContainersNotReady a:terminated(Error 1)x1",
        &with(&times(BEGUN, 2), &[back_off]),
    );
    let (status, said) = live(plain(pod("Always", container("exit 3")), 31));
    assert_eq!(
        status, "Running ContainersNotReady a:terminated(Error 3)x2",
        "{said:?}"
    );
    // An image without a program of its own, and no command.
    let bare = json!({"name": "a", "image": "busybox:1"});
    let (status, _) = live(plain(pod("Always", bare), 5));
    assert_eq!(status, "Running ContainersNotReady a:terminated(Completed 0)x1");
}

#[test]
fn scripted_programs() {
    let life = |program: Value, seconds| Life {
        spec: json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox:1"}]}),
        annotations: json!({"program.fake-apiserver/a": program.to_string()}),
        seconds,
        ..Life::default()
    };
    let oom = json!({"exits": [{"afterMs": 500, "code": 137, "reason": "OOMKilled"}]});
    check(
        life(oom, 5),
        "Failed PodFailed a:terminated(OOMKilled 137)",
        &BEGUN,
    );
    check(life(json!({}), 5), "Running ready a:running", &BEGUN);
}

#[test]
fn images() {
    let (status, said) = live(plain(
        pod("Always", json!({"name": "a", "image": "missing:1"})),
        5,
    ));
    assert_eq!(status, "Pending ContainersNotReady a:waiting(ErrImagePull)");
    assert_eq!(said.len(), 5, "{said:#?}");
    let (status, said) = live(plain(
        pod("Always", json!({"name": "a", "image": "missing:1"})),
        70,
    ));
    assert_eq!(status, "Pending ContainersNotReady a:waiting(ImagePullBackOff)");
    assert!(
        said.iter()
            .any(|line| line == "a Pulling: Pulling image \"missing:1\" x3"),
        "{said:#?}"
    );
    let (status, said) = live(plain(pod("Always", json!({"name": "a", "image": "slow:1"})), 5));
    assert_eq!(status, "Running ready a:running");
    assert_eq!(said[0], "a Pulling: Pulling image \"slow:1\"");
    assert!(
        said[1].starts_with("a Pulled: Successfully pulled image \"slow:1\" in "),
        "{said:?}"
    );
    let never = json!({"name": "a", "image": "missing:1", "imagePullPolicy": "Never"});
    let (status, _) = live(plain(pod("Always", never), 3));
    assert_eq!(status, "Pending ContainersNotReady a:waiting(ErrImageNeverPull)");
    let (status, _) = live(plain(pod("Always", json!({"name": "a", "image": "Upper:1"})), 3));
    assert_eq!(status, "Pending ContainersNotReady a:waiting(InvalidImageName)");
}

#[test]
fn configuration_that_is_missing() {
    let env = |from: Value| json!({"name": "a", "image": "busybox:1", "command": ["sleep", "60"], "env": [{"name": "X", "valueFrom": from}]});
    let (status, said) = live(plain(
        pod(
            "Always",
            env(json!({"configMapKeyRef": {"name": "c", "key": "k"}})),
        ),
        3,
    ));
    assert_eq!(
        status,
        "Pending ContainersNotReady a:waiting(CreateContainerConfigError)"
    );
    assert!(
        said.iter()
            .any(|line| line.starts_with("a Failed: Error: configmap \"c\" not found")),
        "{said:?}"
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"j": "1"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let life = Life {
        before: vec![(path, map.clone())],
        ..plain(
            pod(
                "Always",
                env(json!({"configMapKeyRef": {"name": "c", "key": "k"}})),
            ),
            3,
        )
    };
    let (_, said) = live(life);
    assert!(
        said.iter()
            .any(|line| line.starts_with("a Failed: Error: couldn't find key k in ConfigMap default/c")),
        "{said:?}"
    );
    let optional = env(json!({"secretKeyRef": {"name": "c", "key": "k", "optional": true}}));
    assert_eq!(
        live(plain(pod("Always", optional), 3)).0,
        "Running ready a:running"
    );
    let life = Life {
        later: vec![(5, path, map)],
        ..plain(
            pod(
                "Always",
                env(json!({"configMapKeyRef": {"name": "c", "key": "j"}})),
            ),
            25,
        )
    };
    assert_eq!(live(life).0, "Running ready a:running");
}

#[test]
fn volumes_that_are_missing() {
    let spec = json!({
        "volumes": [{"name": "v", "configMap": {"name": "c"}}],
        "containers": [{"name": "a", "image": "busybox:1", "command": ["sh", "-c", "cat /v/j; sleep 60"],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    });
    let (status, said) = live(plain(spec.clone(), 3));
    assert_eq!(status, "Pending ContainersNotReady a:waiting(ContainerCreating)");
    assert_eq!(
        said,
        ["- FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found x3"]
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"j": "1"}});
    let life = Life {
        later: vec![(5, "/api/v1/namespaces/default/configmaps", map)],
        ..plain(spec, 20)
    };
    assert_eq!(live(life).0, "Running ready a:running");
}

fn probed(script: &str, probes: Value) -> Value {
    let mut container = container(script);
    for (field, probe) in probes.as_object().expect("probes") {
        container[field] = probe.clone();
    }
    pod("Always", container)
}

fn cat(file: &str) -> Value {
    json!({"exec": {"command": ["cat", file]}, "periodSeconds": 1, "failureThreshold": 2})
}

#[test]
fn probes() {
    let script = "sleep 4; touch /tmp/ok; sleep 600";
    let (status, said) = live(plain(
        probed(script, json!({"readinessProbe": cat("/tmp/ok")})),
        3,
    ));
    assert_eq!(status, "Running ContainersNotReady a:running");
    let unhealthy =
        "a Unhealthy: Readiness probe failed: cat: can't open '/tmp/ok': No such file or directory\n";
    assert!(said.iter().any(|line| line.starts_with(unhealthy)), "{said:?}");
    assert_eq!(
        live(plain(
            probed(script, json!({"readinessProbe": cat("/tmp/ok")})),
            8
        ))
        .0,
        "Running ready a:running"
    );

    let (status, said) = live(plain(
        probed(
            "trap exit TERM; while true; do sleep 1; done",
            json!({"livenessProbe": cat("/x")}),
        ),
        6,
    ));
    assert!(
        said.iter()
            .any(|line| line.starts_with("a Killing: Container a failed liveness probe, will be restarted")),
        "{said:?}"
    );
    assert_eq!(status, "Running ready a:runningx2", "{said:?}");

    let startup = json!({"startupProbe": {"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 2, "failureThreshold": 10}});
    assert_eq!(
        live(plain(probed(script, startup.clone()), 3)).0,
        "Running ContainersNotReady a:running"
    );
    assert_eq!(
        live(plain(probed(script, startup), 10)).0,
        "Running ready a:running"
    );

    // A shell listens on no port; what simply serves does on all.
    let tcp = json!({"readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}});
    let (status, said) = live(plain(probed("sleep 60", tcp.clone()), 4));
    assert_eq!(status, "Running ContainersNotReady a:running");
    assert!(
        said.iter()
            .any(|line| line.contains("connect: connection refused")),
        "{said:?}"
    );
    let serving =
        json!({"containers": [{"name": "a", "image": "nginx:1", "readinessProbe": tcp["readinessProbe"]}]});
    assert_eq!(live(plain(serving, 5)).0, "Running ready a:running");
}

#[test]
fn init_containers_and_sidecars() {
    let spec =
        |init: Value| json!({"initContainers": init, "containers": [{"name": "a", "image": "nginx:1"}]});
    let first = json!({"name": "i", "image": "busybox:1", "command": ["sh", "-c", "sleep 3"]});
    assert_eq!(
        live(plain(spec(json!([first])), 3)).0,
        "Pending ContainersNotReady i:running a:waiting(PodInitializing)"
    );
    assert_eq!(
        live(plain(spec(json!([first])), 8)).0,
        "Running ready i:terminated(Completed 0) a:running"
    );
    let fails = json!({"name": "i", "image": "busybox:1", "command": ["false"]});
    let mut never = spec(json!([fails]));
    assert_eq!(
        live(plain(never.clone(), 6)).0,
        "Pending ContainersNotReady i:terminated(Error 1)x1 a:waiting(PodInitializing)"
    );
    never["restartPolicy"] = json!("Never");
    assert_eq!(
        live(plain(never, 6)).0,
        "Failed PodFailed i:terminated(Error 1) a:waiting(PodInitializing)"
    );
    let sidecar = json!({"name": "s", "image": "nginx:1", "restartPolicy": "Always"});
    assert_eq!(
        live(plain(spec(json!([sidecar, first])), 9)).0,
        "Running ready s:running i:terminated(Completed 0) a:running"
    );
    // A sidecar does not keep a job's pod from ending.
    let job =
        json!({"restartPolicy": "Never", "initContainers": [sidecar], "containers": [container("sleep 1")]});
    assert_eq!(
        live(plain(job, 8)).0,
        "Succeeded PodCompleted s:terminated(Completed 0) a:terminated(Completed 0)"
    );
}

#[test]
fn stopping() {
    let stubborn = |grace: u64| Life {
        deleted: Some(grace - 1),
        ..plain(
            json!({"terminationGracePeriodSeconds": grace, "containers": [container("sleep 1000")]}),
            5,
        )
    };
    assert_eq!(live(stubborn(5)).0, "Running ready a:running");
    let mut killed = stubborn(5);
    killed.deleted = Some(7);
    let (status, said) = live(killed);
    assert_eq!(status, "gone");
    assert_eq!(said[3], "a Killing: Stopping container a");
    let hook = |command: Value| {
        let mut container = container("trap exit TERM; while true; do sleep 1; done");
        container["lifecycle"] = json!({"preStop": {"exec": {"command": command}}});
        Life {
            deleted: Some(8),
            ..plain(pod("Always", container), 5)
        }
    };
    let (status, said) = live(hook(json!(["false"])));
    assert_eq!(
        (status.as_str(), said[4].as_str()),
        ("gone", "a FailedPreStopHook: PreStopHook failed")
    );
    let mut slow = hook(json!(["sleep", "5"]));
    slow.deleted = Some(4);
    assert_eq!(live(slow).0, "Running ready a:running");
}

#[test]
fn hooks_deadlines_gates_and_others_words() {
    let mut container_with_hook = container("sleep 600");
    container_with_hook["lifecycle"] = json!({"postStart": {"exec": {"command": ["false"]}}});
    let mut spec = pod("Always", container_with_hook);
    spec["terminationGracePeriodSeconds"] = json!(1);
    let (status, said) = live(plain(spec, 4));
    assert!(
        said.iter()
            .any(|line| line.starts_with("a FailedPostStartHook: PostStartHook failed")),
        "{status} {said:?}"
    );

    let mut deadline = pod("Never", container("trap exit TERM; while true; do sleep 1; done"));
    deadline["activeDeadlineSeconds"] = json!(3);
    let (status, said) = live(plain(deadline, 6));
    assert_eq!(
        status, "Failed PodFailed DeadlineExceeded a:terminated(Completed 0)",
        "{said:?}"
    );

    let mut gated = pod("Always", json!({"name": "a", "image": "nginx:1"}));
    gated["readinessGates"] = json!([{"conditionType": "example.com/gate"}]);
    assert_eq!(
        live(plain(gated.clone(), 4)).0,
        "Running ReadinessGatesNotReady a:running"
    );
    let open = json!({"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}});
    let life = Life {
        patch: Some((3, "/status", open)),
        ..plain(gated, 5)
    };
    assert_eq!(live(life).0, "Running ready a:running");

    let evicted = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    let life = Life {
        patch: Some((3, "/status", evicted)),
        ..plain(pod("Always", json!({"name": "a", "image": "nginx:1"})), 5)
    };
    let (status, said) = live(life);
    assert_eq!(status, "Failed PodFailed a:terminated(Completed 0)");
    assert_eq!(said[3], "a Killing: Stopping container a");

    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "busybox:1", "command": ["sleep", "1"]}]}});
    let life = Life {
        patch: Some((3, "/ephemeralcontainers", debugger)),
        ..plain(pod("Always", json!({"name": "a", "image": "nginx:1"})), 8)
    };
    assert_eq!(live(life).0, "Running ready a:running d:terminated(Completed 0)");
}

#[test]
fn resources_that_change() {
    let resized =
        json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "200m"}}}]}});
    let of = |policy: &str| {
        let mut container =
            json!({"name": "a", "image": "nginx:1", "resources": {"requests": {"cpu": "100m"}}});
        container["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": policy}]);
        Life {
            patch: Some((3, "/resize", resized.clone())),
            ..plain(pod("Always", container), 8)
        }
    };
    let (status, said) = live(of("NotRequired"));
    assert_eq!(status, "Running ready a:running");
    assert_eq!(said.len(), 5, "{said:#?}");
    let (status, said) = live(of("RestartContainer"));
    assert_eq!(status, "Running ready a:runningx1");
    assert!(
        said.contains(&"a Killing: Container a resize requires restart".to_owned()),
        "{said:#?}"
    );
}
