//! Rows of volumes: a volume `v`, existing and new objects, the files that the container looks for, and the state of the pod.

use shared_json::{Value, json};

use crate::lives::{Life, live};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

const RUNS: &str = "Running ready a:running";
const FAILS: &str = "Failed PodFailed a:terminated(Error 1)";
const WAITS: &str = "Pending ContainersNotReady a:waiting(ContainerCreating)";

fn map() -> (&'static str, Value) {
    (
        MAPS,
        json!({"metadata": {"name": "c"}, "data": {"j": "one", "k": "two"}}),
    )
}

fn bytes() -> (&'static str, Value) {
    (
        MAPS,
        json!({"metadata": {"name": "c"}, "data": {"j": "one"}, "binaryData": {"b": "AAEC"}}),
    )
}

fn secret() -> (&'static str, Value) {
    (
        SECRETS,
        json!({"metadata": {"name": "c"}, "stringData": {"j": "three"}}),
    )
}

/// The container runs on if the test of its files is true, and else ends with 1.
fn spec(volume: Value, test: &str) -> Value {
    let mut volume = volume;
    volume["name"] = json!("v");
    let script = format!("{test} || exit 1; sleep 600");
    json!({
        "restartPolicy": "Never", "volumes": [volume],
        "containers": [{"name": "a", "image": "busybox:1", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    })
}

#[track_caller]
fn check(spec: Value, before: &[(&'static str, Value)], status: &str, said: &str) {
    told(
        Life {
            spec,
            before: before.to_vec(),
            seconds: 6,
            ..Life::default()
        },
        status,
        said,
    );
}

#[track_caller]
fn told(life: Life, status: &str, said: &str) {
    let spec = life.spec.clone();
    let (found, events) = live(life);
    assert_eq!(found, status, "{spec} {events:#?}");
    assert!(
        events.iter().any(|event| event.contains(said)),
        "{spec}: {said}: {events:#?}"
    );
}

const STARTED: &str = "a Started";

#[test]
fn sources_that_are_missing() {
    let failed = "- FailedMount: MountVolume.SetUp failed for volume \"v\" : ";
    let maps = json!({"configMap": {"name": "c"}});
    check(
        spec(maps.clone(), "true"),
        &[],
        WAITS,
        &format!("{failed}configmap \"c\" not found"),
    );
    check(
        spec(json!({"secret": {"secretName": "c"}}), "true"),
        &[],
        WAITS,
        &format!("{failed}secret \"c\" not found"),
    );
    // Of another kind is not there.
    check(spec(maps.clone(), "true"), &[secret()], WAITS, failed);
    check(
        spec(
            json!({"configMap": {"name": "c", "items": [{"key": "x", "path": "x"}]}}),
            "true",
        ),
        &[map()],
        WAITS,
        &format!("{failed}configmap references non-existent config key: x"),
    );
    check(
        spec(
            json!({"secret": {"secretName": "c", "items": [{"key": "x", "path": "x"}]}}),
            "true",
        ),
        &[secret()],
        WAITS,
        &format!("{failed}references non-existent secret key: x"),
    );
    let of = |sources: Value| json!({"projected": {"sources": sources}});
    check(
        spec(
            of(json!([{"configMap": {"name": "c"}}, {"secret": {"name": "c"}}])),
            "true",
        ),
        &[],
        WAITS,
        &format!("{failed}[configmap \"c\" not found, secret \"c\" not found]"),
    );
    check(
        spec(
            of(json!([{"secret": {"name": "c"}}, {"configMap": {"name": "c"}}])),
            "true",
        ),
        &[map()],
        WAITS,
        &format!("{failed}secret \"c\" not found"),
    );
    check(
        spec(
            of(json!([{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "c"}}])),
            "true",
        ),
        &[],
        WAITS,
        &format!("{failed}configmap \"c\" not found"),
    );
    // All are waited for, whether anything mounts them or not, and before anything is run.
    let mut unused = spec(maps.clone(), "true");
    unused["containers"][0]["volumeMounts"] = json!([]);
    check(unused, &[], WAITS, failed);
    let mut two = spec(maps.clone(), "true");
    two["volumes"] = json!([two["volumes"][0], {"name": "w", "secret": {"secretName": "d"}}]);
    check(
        two,
        &[map()],
        WAITS,
        "- FailedMount: MountVolume.SetUp failed for volume \"w\" : secret \"d\" not found",
    );
    let mut first = spec(maps, "true");
    first["initContainers"] = json!([{"name": "i", "image": "busybox:1", "command": ["true"]}]);
    check(
        first,
        &[],
        "Pending ContainersNotReady i:waiting(PodInitializing) a:waiting(PodInitializing)",
        failed,
    );
}

#[test]
fn sources_that_need_not_be_there() {
    let maps = json!({"configMap": {"name": "c", "optional": true}});
    check(spec(maps.clone(), "cat /v/j"), &[], FAILS, STARTED);
    check(spec(maps, "cat /v/j"), &[map()], RUNS, STARTED);
    check(
        spec(
            json!({"secret": {"secretName": "c", "optional": true}}),
            "cat /v/j",
        ),
        &[],
        FAILS,
        STARTED,
    );
    let item = |key: &str| json!({"configMap": {"name": "c", "optional": true, "items": [{"key": key, "path": "p"}]}});
    check(spec(item("x"), "cat /v/p"), &[map()], FAILS, STARTED);
    check(spec(item("k"), "cat /v/p"), &[map()], RUNS, STARTED);
    check(
        spec(
            json!({"projected": {"sources": [{"secret": {"name": "c", "optional": true}}, {"configMap": {"name": "c"}}]}}),
            "cat /v/k",
        ),
        &[map()],
        RUNS,
        STARTED,
    );
}

#[test]
fn what_is_in_them() {
    let maps = json!({"configMap": {"name": "c"}});
    check(spec(maps.clone(), "grep one /v/j"), &[map()], RUNS, STARTED);
    check(spec(maps.clone(), "cat /v/x"), &[map()], FAILS, STARTED);
    check(
        spec(json!({"secret": {"secretName": "c"}}), "grep three /v/j"),
        &[secret()],
        RUNS,
        STARTED,
    );
    let item = json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}});
    check(spec(item.clone(), "grep two /v/p"), &[map()], RUNS, STARTED);
    check(spec(item, "cat /v/j"), &[map()], FAILS, STARTED);
    // Of two of one name the later source counts.
    let both = |one: &str, other: &str| {
        let source = |field: &str| json!({field: {"name": "c"}});
        json!({"projected": {"sources": [source(one), source(other)]}})
    };
    check(
        spec(both("configMap", "secret"), "grep three /v/j"),
        &[map(), secret()],
        RUNS,
        STARTED,
    );
    check(
        spec(both("secret", "configMap"), "grep one /v/j"),
        &[map(), secret()],
        RUNS,
        STARTED,
    );
    check(spec(json!({"emptyDir": {}}), "cat /v/j"), &[], FAILS, STARTED);
    let mut shared = spec(json!({"emptyDir": {}}), "cat /v/j");
    shared["initContainers"] = json!([{
        "name": "i", "image": "busybox:1", "command": ["sh", "-c", "echo x > /v/j"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }]);
    check(
        shared,
        &[],
        "Running ready i:terminated(Completed 0) a:running",
        STARTED,
    );
    let field =
        |path: &str| json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": path}}]}});
    let life = |spec: Value| Life {
        spec,
        annotations: json!({"b": "2", "a": "1"}),
        seconds: 6,
        ..Life::default()
    };
    told(life(spec(field("metadata.name"), "grep p /v/p")), RUNS, STARTED);
    told(
        life(spec(field("metadata.annotations"), "grep 'a=\"1\"' /v/p")),
        RUNS,
        STARTED,
    );
    told(
        life(spec(field("metadata.annotations['b']"), "grep 2 /v/p")),
        RUNS,
        STARTED,
    );
    let within = json!({"projected": {"sources": [
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}, {"configMap": {"name": "c"}},
    ]}});
    check(spec(within, "grep default /v/p"), &[map()], RUNS, STARTED);
    let amount = |resource: &str, divisor: &str| {
        json!({"downwardAPI": {"items": [{"path": "d/p", "resourceFieldRef":
            {"containerName": "a", "resource": resource, "divisor": divisor}}]}})
    };
    let asks = |volume: Value, test: &str| {
        let mut spec = spec(volume, test);
        spec["containers"][0]["resources"] =
            json!({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "65Mi"}});
        spec
    };
    for (resource, divisor, shown) in [
        ("requests.cpu", "0", "1"),
        ("requests.cpu", "1m", "250"),
        ("requests.memory", "1Mi", "64"),
        ("limits.memory", "1Gi", "1"),
        ("requests.ephemeral-storage", "0", "0"),
        // Without a limit: what the node has.
        ("limits.cpu", "1m", "8000"),
    ] {
        let test = format!("test \"$(cat /v/d/p)\" = {shown}");
        check(asks(amount(resource, divisor), &test), &[], RUNS, STARTED);
    }
    let map = json!({"configMap": {"name": "c"}});
    check(
        spec(map.clone(), "test $(cat /v/b | wc -c) = 3"),
        &[bytes()],
        RUNS,
        STARTED,
    );
    check(spec(map, "grep one /v/j"), &[bytes()], RUNS, STARTED);
    let item = json!({"configMap": {"name": "c", "items": [{"key": "b", "path": "x/y/z"}]}});
    check(spec(item, "test -s /v/x/y/z"), &[bytes()], RUNS, STARTED);
}

#[test]
fn sources_that_come_later() {
    let later = |at: u64, seconds: u64| {
        let (path, object) = map();
        Life {
            spec: spec(json!({"configMap": {"name": "c"}}), "grep one /v/j"),
            later: vec![(at, path, object)],
            seconds,
            ..Life::default()
        }
    };
    told(later(2, 6), RUNS, "- FailedMount");
    // Each try waits twice as long as the one before.
    told(later(20, 28), WAITS, "configmap \"c\" not found x6");
    told(later(20, 40), RUNS, "- FailedMount");
}
