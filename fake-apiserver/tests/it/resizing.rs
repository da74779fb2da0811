//! Pods that are resized in place on a node of 8 cores: requested and allocated resources, and the conditions.

use std::time::Duration;

use fake_apiserver::Cluster;
use jiff::Timestamp;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{play_on, request, send, simulate, with};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn requests(cpu: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": "1Gi"}})
}

/// Does one thing: `make NAME CPU [init|sidecar|restart|never]`, `resize NAME CPU`, `image NAME`, `finish NAME`,
/// `delete NAME`, `priority NAME CPU VALUE` (makes a pod of that priority), `wait SECONDS`.
async fn act(cluster: &Cluster, step: &str) {
    let words: Vec<&str> = step.split(' ').collect();
    let (verb, name) = (words[0], words[1]);
    let path = format!("{PODS}/{name}");
    let (code, answer) = match verb {
        "make" | "priority" => {
            let mut container = json!({"name": "c", "image": "nginx:1", "resources": requests(words[2])});
            let mut spec = json!({"nodeName": "node1", "terminationGracePeriodSeconds": 0});
            match words.get(3) {
                Some(&"sidecar") => {
                    let mut sidecar = container.clone();
                    sidecar["name"] = json!("s");
                    sidecar["restartPolicy"] = json!("Always");
                    spec["initContainers"] = json!([sidecar]);
                }
                Some(&"restart") => {
                    container["resizePolicy"] =
                        json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
                }
                Some(&"short") => container["command"] = json!(["sleep", "30"]),
                _ => {}
            }
            if words.get(3) == Some(&"short") {
                spec["restartPolicy"] = json!("Never");
            }
            if verb == "priority" {
                let class = json!({
                    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                    "value": words[3].parse::<i64>().unwrap(),
                });
                let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
                assert_eq!(request(cluster, "POST", path, &class).await.0, 201);
                spec["priorityClassName"] = json!(name);
            }
            spec["containers"] = json!([container]);
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
            request(cluster, "POST", PODS, &pod).await
        }
        "serve" => {
            let port = json!({"containerPort": 80, "hostPort": words[2].parse::<u16>().unwrap()});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
                    "nodeName": "node1", "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "c", "image": "nginx:1", "ports": [port]}],
                },
            });
            request(cluster, "POST", PODS, &pod).await
        }
        "taint" => {
            let patch = json!({"spec": {"taints": [{"key": name, "effect": words[2]}]}});
            let kind = "application/merge-patch+json";
            send(cluster, "PATCH", "/api/v1/nodes/node1", kind, &patch).await
        }
        "resize" => {
            let patch = json!({"spec": {"containers": [{"name": "c", "resources": requests(words[2])}]}});
            let kind = "application/strategic-merge-patch+json";
            send(cluster, "PATCH", &format!("{path}/resize"), kind, &patch).await
        }
        "image" => {
            let patch = json!({"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}});
            send(
                cluster,
                "PATCH",
                &path,
                "application/strategic-merge-patch+json",
                &patch,
            )
            .await
        }
        "delete" => request(cluster, "DELETE", &path, &Value::Null).await,
        "wait" => {
            cluster
                .run_for(Duration::from_millis(name.parse::<u64>().unwrap() * 1000))
                .await;
            return;
        }
        other => panic!("{other}"),
    };
    assert!(code < 300, "{step}: {answer}");
    cluster.run_for(Duration::from_secs(5)).await;
}

/// `a: 2 given 2 runs 2 x0`, with the conditions of a resize.
fn line(pod: &Value) -> String {
    let cpu = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let status = &pod["status"]["containerStatuses"][0];
    let mut out = format!(
        "{}: {} given {} runs {} x{}",
        pod["metadata"]["name"].as_str().unwrap(),
        cpu(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]),
        cpu(&status["allocatedResources"]["cpu"]),
        cpu(&status["resources"]["requests"]["cpu"]),
        status["restartCount"],
    );
    for condition in pod["status"]["conditions"].as_array().into_iter().flatten() {
        let kind = condition["type"].as_str().unwrap();
        if kind.starts_with("PodResize") {
            assert_eq!(condition["status"], "True");
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            let message = text("message").replace("Node didn't have enough resource: ", "");
            out.push_str(&format!(
                " {kind}({} {message} {})",
                text("reason"),
                condition["observedGeneration"]
            ));
        }
    }
    out
}

/// Plays the steps; then the pods are as in `pods`, and there were these events of resizes, in that order.
fn check(steps: &[&str], pods: &[&str], events: &[&str]) {
    let (mut found, mut said) = (Vec::new(), Vec::new());
    let (lines, told) = (&mut found, &mut said);
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        for step in steps {
            act(&cluster, step).await;
        }
        let (_, all) = request(&cluster, "GET", PODS, &Value::Null).await;
        lines.extend(all["items"].as_array().unwrap().iter().map(line));
        let (_, all) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        let mut all: Vec<&Value> = all["items"].as_array().unwrap().iter().collect();
        all.sort_by_key(|event| {
            event["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        for event in all {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let reason = text("/reason");
            if reason.starts_with("Resize") {
                let kind = if text("/type") == "Warning" { "!" } else { "" };
                told.push(format!(
                    "{} {kind}{reason} {}",
                    text("/involvedObject/name"),
                    text("/message")
                ));
            }
        }
    });
    assert_eq!(found, pods, "{steps:?}");
    let short: Vec<String> = said.iter().map(|text| shortened(text)).collect();
    assert_eq!(short, events, "{steps:?}");
}

/// The part of an event's message before the containers, and the generation.
fn shortened(text: &str) -> String {
    let (head, rest) = text.split_once(": {").expect("a summary");
    let generation = rest.split("\"generation\":").nth(1).unwrap_or_default();
    format!(
        "{head} {}",
        generation.split([',', '}']).next().unwrap_or_default()
    )
}

#[test]
fn a_resize_that_fits_is_done() {
    let done = [
        "a ResizeStarted Pod resize started 2",
        "a ResizeCompleted Pod resize completed 2",
    ];
    check(&["make a 2", "resize a 3"], &["a: 3 given 3 runs 3 x0"], &done);
    check(&["make a 2", "resize a 1"], &["a: 1 given 1 runs 1 x0"], &done);
    check(&["make a 2", "resize a 8"], &["a: 8 given 8 runs 8 x0"], &done);
    check(
        &["make a 2 restart", "resize a 3"],
        &["a: 3 given 3 runs 3 x1"],
        &done,
    );
    check(
        &["make a 2 sidecar", "resize a 3"],
        &["a: 3 given 3 runs 3 x0"],
        &done,
    );
    check(&["make a 2", "resize a 2"], &["a: 2 given 2 runs 2 x0"], &[]);
    check(&["make a 2", "image a"], &["a: 2 given 2 runs 2 x1"], &[]);
    check(
        &["make a 2", "resize a 3", "resize a 4"],
        &["a: 4 given 4 runs 4 x0"],
        &[
            "a ResizeStarted Pod resize started 2",
            "a ResizeCompleted Pod resize completed 2",
            "a ResizeStarted Pod resize started 3",
            "a ResizeCompleted Pod resize completed 3",
        ],
    );
}

#[test]
fn a_resize_without_room_waits() {
    let deferred = "a !ResizeDeferred Pod resize OutOfcpu 2";
    check(
        &["make a 2", "make b 4", "resize a 5"],
        &[
            "a: 5 given 2 runs 2 x0 PodResizePending(Deferred cpu, requested: 5000, used: 4000, capacity: 8000 2)",
            "b: 4 given 4 runs 4 x0",
        ],
        &[deferred],
    );
    check(
        &["make a 2", "make b 2", "resize a 7"],
        &[
            "a: 7 given 2 runs 2 x0 PodResizePending(Deferred cpu, requested: 7000, used: 2000, capacity: 8000 2)",
            "b: 2 given 2 runs 2 x0",
        ],
        &[deferred],
    );
    // Taken back.
    check(
        &["make a 2", "make b 2", "resize a 7", "resize a 2"],
        &["a: 2 given 2 runs 2 x0", "b: 2 given 2 runs 2 x0"],
        &[deferred],
    );
    // Asked for otherwise: in vain, and with success.
    check(
        &["make a 2", "make b 2", "resize a 7", "resize a 8"],
        &[
            "a: 8 given 2 runs 2 x0 PodResizePending(Deferred cpu, requested: 8000, used: 2000, capacity: 8000 3)",
            "b: 2 given 2 runs 2 x0",
        ],
        &[deferred, "a !ResizeDeferred Pod resize OutOfcpu 3"],
    );
    check(
        &["make a 2", "make b 2", "resize a 7", "resize a 6"],
        &["a: 6 given 6 runs 6 x0", "b: 2 given 2 runs 2 x0"],
        &[
            deferred,
            "a ResizeStarted Pod resize started 3",
            "a ResizeCompleted Pod resize completed 3",
        ],
    );
    // Nothing is told twice, however often the node looks.
    check(
        &["make a 2", "make b 2", "resize a 7", "wait 600"],
        &[
            "a: 7 given 2 runs 2 x0 PodResizePending(Deferred cpu, requested: 7000, used: 2000, capacity: 8000 2)",
            "b: 2 given 2 runs 2 x0",
        ],
        &[deferred],
    );
    // Another container's restart changes nothing of that.
    check(
        &["make a 2", "make b 2", "resize a 7", "image a"],
        &[
            "a: 7 given 2 runs 2 x1 PodResizePending(Deferred cpu, requested: 7000, used: 2000, capacity: 8000 2)",
            "b: 2 given 2 runs 2 x0",
        ],
        &[deferred],
    );
}

#[test]
fn room_that_others_leave_is_given() {
    let told = [
        "a !ResizeDeferred Pod resize OutOfcpu 2",
        "a ResizeStarted Pod resize started 2",
        "a ResizeCompleted Pod resize completed 2",
    ];
    check(
        &["make a 2", "make b 4", "resize a 5", "delete b"],
        &["a: 5 given 5 runs 5 x0"],
        &told,
    );
    check(
        &["make a 2", "make b 4 short", "resize a 5", "wait 40"],
        &["a: 5 given 5 runs 5 x0", "b: 4 given 4 runs 4 x0"],
        &told,
    );
    check(
        &["make a 2", "make b 4", "resize a 5", "resize b 3"],
        &["a: 5 given 5 runs 5 x0", "b: 3 given 3 runs 3 x0"],
        &[
            "a !ResizeDeferred Pod resize OutOfcpu 2",
            "b ResizeStarted Pod resize started 2",
            "b ResizeCompleted Pod resize completed 2",
            "a ResizeStarted Pod resize started 2",
            "a ResizeCompleted Pod resize completed 2",
        ],
    );
    // The one of the higher priority first, and then there is no room for the other.
    check(
        &[
            "make a 2",
            "priority b 2 10",
            "make c 4",
            "resize a 4",
            "resize b 4",
            "delete c",
        ],
        &["a: 4 given 4 runs 4 x0", "b: 4 given 4 runs 4 x0"],
        &[
            "a !ResizeDeferred Pod resize OutOfcpu 2",
            "b !ResizeDeferred Pod resize OutOfcpu 2",
            "b ResizeStarted Pod resize started 2",
            "a ResizeStarted Pod resize started 2",
            "a ResizeCompleted Pod resize completed 2",
            "b ResizeCompleted Pod resize completed 2",
        ],
    );
    check(
        &[
            "make a 2",
            "priority b 2 10",
            "make c 4",
            "resize a 6",
            "resize b 5",
            "delete c",
        ],
        &[
            "a: 6 given 2 runs 2 x0 PodResizePending(Deferred cpu, requested: 6000, used: 5000, capacity: 8000 2)",
            "b: 5 given 5 runs 5 x0",
        ],
        &[
            "a !ResizeDeferred Pod resize OutOfcpu 2",
            "b !ResizeDeferred Pod resize OutOfcpu 2",
            "b ResizeStarted Pod resize started 2",
            "b ResizeCompleted Pod resize completed 2",
        ],
    );
}

/// A pod that is put on the node by name: its phase, its reason and its message.
fn placed(steps: &[&str], spec: Value, expected: &str) {
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        for step in steps {
            act(&cluster, step).await;
        }
        let mut spec = spec;
        spec["nodeName"] = json!("node1");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
        let (code, answer) = request(&cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(5)).await;
        let (_, pod) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let text = |field: &str| pod["status"][field].as_str().unwrap_or_default().to_owned();
        *slot = format!("{} {}: {}", text("phase"), text("reason"), text("message"));
        let (_, events) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        let said = events["items"].as_array().unwrap().iter().any(|event| {
            event["involvedObject"]["name"] == "p"
                && event["reason"] == pod["status"]["reason"]
                && event["type"] == "Warning"
        });
        assert_eq!(said, text("phase") == "Failed", "{events}");
    });
    assert_eq!(found, expected, "{steps:?}");
}

#[test]
fn a_node_takes_what_fits() {
    let asks =
        |cpu: &str| json!({"containers": [{"name": "c", "image": "nginx:1", "resources": requests(cpu)}]});
    placed(&[], asks("8"), "Running : ");
    placed(
        &[],
        asks("9"),
        "Failed OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000",
    );
    placed(
        &["make a 2"],
        asks("7"),
        "Failed OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 7000, used: 2000, capacity: 8000",
    );
    placed(&["make a 2", "delete a"], asks("7"), "Running : ");
    // A resize that waits takes no room.
    placed(&["make a 2", "make b 2", "resize a 7"], asks("4"), "Running : ");
    let mut elsewhere = asks("1");
    elsewhere["nodeSelector"] = json!({"kubernetes.io/hostname": "node2"});
    placed(
        &[],
        elsewhere.clone(),
        "Failed NodeAffinity: Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    );
    elsewhere["nodeSelector"] = json!({"kubernetes.io/hostname": "node1"});
    placed(&[], elsewhere, "Running : ");
    // Others' ports, and what the node drives away.
    let port = |number: u16| json!({"containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80, "hostPort": number}]}]});
    placed(&["serve a 8080"], port(8081), "Running : ");
    placed(
        &["serve a 8080"],
        port(8080),
        "Failed NodePorts: Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    );
    placed(&["serve a 8080", "delete a"], port(8080), "Running : ");
    placed(&["taint k NoSchedule"], asks("1"), "Running : ");
    let mut tolerant = asks("1");
    tolerant["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
    placed(&["taint k NoExecute"], tolerant, "Running : ");
    let mut other = asks("1");
    other["os"] = json!({"name": "windows"});
    placed(
        &[],
        other,
        "Failed PodOSNotSupported: Pod was rejected: Failed to admit pod as the OS field doesn't match node OS",
    );
    let much = json!({"containers": [{"name": "c", "image": "nginx:1", "resources": {"requests": {"memory": "33Gi"}}}]});
    placed(
        &[],
        much,
        "Failed OutOfmemory: Pod was rejected: Node didn't have enough resource: memory, requested: 35433480192, used: 0, capacity: 34359738368",
    );
}

/// Of pods that come at once and exclude each other, the first one stays.
#[test]
fn the_first_of_several_is_admitted() {
    let ports = json!({"ports": [{"containerPort": 80, "hostPort": 8080}]});
    let cores = json!({"resources": {"requests": {"cpu": "5"}}});
    for more in [ports, cores] {
        let container = with(json!({"name": "c", "image": "nginx:1"}), more);
        let make = |name: &str| json!({"do": format!("POST {PODS}"), "code": 201, "body": {"metadata": {"name": name}, "spec": {"nodeName": "node1", "containers": [container]}}});
        let is = |name: &str, phase: &str| json!({"do": format!("GET {PODS}/{name}"), "has": {"/status/phase": phase}});
        let (mut wait, last) = (is("b", "Running"), is("a", "Failed"));
        wait["wait"] = json!(30);
        let steps = vec![make("b"), make("a"), wait, last];
        play_on(1, true, Value::from(steps));
    }
}

/// When the container of this index in pod `p` has begun anew.
async fn begun_again(cluster: &Cluster, index: usize) -> Timestamp {
    loop {
        cluster.run_for(Duration::from_millis(10)).await;
        let (_, pod) = request(cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let status = &pod["status"]["containerStatuses"][index];
        if status["restartCount"] == 1 && status["ready"] == true {
            return cluster.clock().now();
        }
    }
}

/// Makes pod `p` of two containers, and lets it run for a while.
async fn run_two(cluster: &Cluster, containers: [Value; 2]) {
    let spec = json!({"nodeName": "node1", "terminationGracePeriodSeconds": 20, "containers": containers});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let (code, answer) = request(cluster, "POST", PODS, &pod).await;
    assert_eq!(code, 201, "{answer}");
    cluster.run_for(Duration::from_secs(30)).await;
}

/// Changes a container of pod `p`.
async fn change(cluster: &Cluster, subresource: &str, container: Value) {
    let path = format!("{PODS}/p{subresource}");
    let change = json!({"spec": {"containers": [container]}});
    let kind = "application/strategic-merge-patch+json";
    let (code, answer) = send(cluster, "PATCH", &path, kind, &change).await;
    assert_eq!(code, 200, "{answer}");
}

/// How long a container takes to begin anew, after a change that comes right after a pass in which another one began anew.
#[rstest]
#[case::of_its_image("", json!({"name": "a", "image": "nginx:2"}))]
#[case::of_its_resources("/resize", json!({"name": "a", "resources": requests("2")}))]
fn a_change_waits_for_the_next_list_of_containers(#[case] subresource: &'static str, #[case] changed: Value) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let policy = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        let a = json!({"name": "a", "image": "nginx:1", "resources": requests("1"), "resizePolicy": policy});
        let hook = json!({"postStart": {"sleep": {"seconds": 10}}});
        let b = json!({"name": "b", "image": "nginx:1", "resources": requests("1"), "lifecycle": hook});
        run_two(&cluster, [a, b]).await;
        change(&cluster, "", json!({"name": "b", "image": "nginx:2"})).await;
        let then = begun_again(&cluster, 1).await;
        change(&cluster, subresource, changed).await;
        let took = begun_again(&cluster, 0).await.duration_since(then).as_millis();
        assert!((500..1500).contains(&took), "{took} ms");
    });
}

/// The same after a liveness probe that fails in such a pass. The program does not heed signals: its grace period passes first.
#[test]
fn a_failed_probe_waits_for_the_next_list_of_containers() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let shell = json!(["sh", "-c", "touch /tmp/ok; sleep 31; rm /tmp/ok; sleep 600"]);
        let probe =
            json!({"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 1});
        let a = json!({"name": "a", "image": "busybox:1", "command": shell, "livenessProbe": probe});
        let hook = json!({"postStart": {"sleep": {"seconds": 10}}});
        let b = json!({"name": "b", "image": "nginx:1", "lifecycle": hook});
        run_two(&cluster, [a, b]).await;
        change(&cluster, "", json!({"name": "b", "image": "nginx:2"})).await;
        let then = begun_again(&cluster, 1).await;
        let took = begun_again(&cluster, 0).await.duration_since(then).as_millis();
        assert!((20_500..21_500).contains(&took), "{took} ms");
    });
}
