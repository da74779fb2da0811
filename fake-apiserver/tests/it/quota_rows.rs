//! Rows of resource quotas: the limits, the changes in the namespace, and the counts of the status then.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const CORE: &str = "/api/v1/namespaces/default";
const MERGE: &str = "application/merge-patch+json";

/// The path of the kind that a word stands for, and an object of it.
fn made(kind: &str, name: &str) -> (String, Value) {
    let metadata = json!({"name": name});
    let container = json!({"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}});
    let pod = json!({"containers": [container], "terminationGracePeriodSeconds": 10});
    let (path, mut object) = match kind {
        "pod" => (format!("{CORE}/pods"), json!({"spec": pod})),
        // On a node that is not there.
        "placed" => {
            let mut spec = pod;
            spec["nodeName"] = json!("away");
            (format!("{CORE}/pods"), json!({"spec": spec}))
        }
        "job" => {
            let mut spec = pod;
            spec["restartPolicy"] = json!("Never");
            let spec = json!({"template": {"spec": spec}, "suspend": true});
            let path = "/apis/batch/v1/namespaces/default/jobs";
            (path.to_owned(), json!({"spec": spec}))
        }
        "service" => (
            format!("{CORE}/services"),
            json!({"spec": {"ports": [{"port": 80}]}}),
        ),
        "claim" => {
            let spec =
                json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
            (format!("{CORE}/persistentvolumeclaims"), json!({"spec": spec}))
        }
        "secret" => (format!("{CORE}/secrets"), json!({})),
        other => panic!("{other}"),
    };
    object["metadata"] = metadata;
    (path, object)
}

/// * `KIND NAME`: such an object is made (`KIND NAME CODE`: or refused); `- KIND NAME`: it is deleted;
/// * `patch KIND NAME PATCH`, `status KIND NAME PATCH`: a part of it changes; `used NAME AMOUNT`: a client sets the status;
/// * `hard NAME AMOUNT`: the quota limits this, too; or seconds that pass.
async fn act(cluster: &Cluster, step: &str) {
    let words: Vec<&str> = step.splitn(4, ' ').collect();
    let (method, path, body, expected) = match words.as_slice() {
        [seconds] => {
            let seconds: u64 = seconds.parse().expect("seconds");
            return cluster.run_for(Duration::from_secs(seconds)).await;
        }
        ["-", kind, name] => (
            "DELETE",
            format!("{}/{name}", made(kind, name).0),
            Value::Null,
            200,
        ),
        [verb @ ("patch" | "status"), kind, name, patch] => {
            let below = if *verb == "status" { "/status" } else { "" };
            let patch = shared_json::from_str(patch).expect("a patch");
            (
                "PATCH",
                format!("{}/{name}{below}", made(kind, name).0),
                patch,
                200,
            )
        }
        ["used", name, amount] => {
            let patch = json!({"status": {"used": {*name: amount}}});
            ("PATCH", format!("{CORE}/resourcequotas/q/status"), patch, 200)
        }
        ["hard", name, amount] => {
            let patch = json!({"spec": {"hard": {*name: amount}}});
            ("PATCH", format!("{CORE}/resourcequotas/q"), patch, 200)
        }
        [kind, name, code @ ..] => {
            let (path, object) = made(kind, name);
            let code = code.first().map_or(201, |code| code.parse().expect("a code"));
            ("POST", path, object, code)
        }
        other => panic!("{other:?}"),
    };
    let kind = if method == "PATCH" {
        MERGE
    } else {
        "application/json"
    };
    let (code, answer) = send(cluster, method, &path, kind, &body).await;
    assert_eq!(code, expected, "{step}: {answer}");
}

/// A quota (its limits, `NAME=AMOUNT`, and its scopes after a `/`), the steps, and its counts in the end.
#[track_caller]
fn check(quota: &str, steps: &[&str], expected: &str) {
    let (quota, steps) = (
        quota.to_owned(),
        steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>(),
    );
    let (expected, shown) = (expected.to_owned(), format!("{quota} {steps:?}"));
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let (limits, scopes) = quota.split_once('/').unwrap_or((&quota, ""));
        let hard: shared_json::Map = limits
            .split_whitespace()
            .map(|limit| {
                let (name, amount) = limit.split_once('=').expect("an amount");
                (name.replace('|', "/"), Value::from(amount))
            })
            .collect();
        let scopes: Value = scopes.split_whitespace().map(Value::from).collect();
        let body = json!({"metadata": {"name": "q"}, "spec": {"hard": hard, "scopes": scopes}});
        let (code, answer) = request(&cluster, "POST", &format!("{CORE}/resourcequotas"), &body).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(1)).await;
        for step in &steps {
            act(&cluster, step).await;
        }
        let (_, quota) = request(&cluster, "GET", &format!("{CORE}/resourcequotas/q"), &Value::Null).await;
        let used = quota["status"]["used"].as_object().cloned().unwrap_or_default();
        let used: Vec<String> = used
            .iter()
            .map(|(name, amount)| format!("{name}={}", amount.as_str().unwrap_or_default()))
            .collect();
        assert_eq!(used.join(" "), expected, "{shown}");
    });
}

#[test]
fn objects_come_and_go() {
    let pods = "pods=5 requests.cpu=3 count|pods=5";
    check(pods, &[], "count/pods=0 pods=0 requests.cpu=0");
    check(pods, &["pod a", "pod b"], "count/pods=2 pods=2 requests.cpu=2");
    check(
        pods,
        &["pod a", "pod b", "- pod a", "1"],
        "count/pods=1 pods=1 requests.cpu=1",
    );
    // What has ended is there and uses nothing.
    let ended = r#"status pod a {"status": {"phase": "Succeeded"}}"#;
    check(
        pods,
        &["pod a", "pod b", ended, "1"],
        "count/pods=2 pods=1 requests.cpu=1",
    );
    check(
        pods,
        &["pod a", "pod b", "pod c", "pod d 403"],
        "count/pods=3 pods=3 requests.cpu=3",
    );
    check(
        "services=1 services.nodeports=1 count|services=9",
        &["service a"],
        "count/services=1 services=1 services.nodeports=0",
    );
    check(
        "persistentvolumeclaims=3 requests.storage=5Gi",
        &["claim a", "claim b"],
        "persistentvolumeclaims=2 requests.storage=2Gi",
    );
    check(
        "count|jobs.batch=3",
        &["job a", "job b", "- job a", "1"],
        "count/jobs.batch=1",
    );
    check(
        "secrets=3 count|secrets=3",
        &["secret a", "- secret a", "6"],
        "count/secrets=0 secrets=0",
    );
}

/// An end of its own takes a pod from one quota into another.
#[test]
fn scopes() {
    let deadline = r#"patch pod a {"spec": {"activeDeadlineSeconds": 1000}}"#;
    check("pods=5/Terminating", &["pod a", "1"], "pods=0");
    check("pods=5/Terminating", &["pod a", deadline, "1"], "pods=1");
    check("pods=5/NotTerminating", &["pod a", "1"], "pods=1");
    check("pods=5/NotTerminating", &["pod a", deadline, "1"], "pods=0");
    check("pods=5/BestEffort", &["pod a", "1"], "pods=0");
    check("pods=5/NotBestEffort", &["pod a", "1"], "pods=1");
}

/// Another client's values in its status stay until the next count: that of the resources in question, or of all after five
/// minutes.
#[test]
fn what_others_write() {
    check("pods=5", &["pod a", "used pods 4", "100"], "pods=4");
    check("pods=5", &["pod a", "used pods 4", "301"], "pods=1");
    check(
        "pods=5",
        &["pod a", "used pods 4", "hard secrets 3", "1"],
        "pods=1 secrets=0",
    );
    check(
        "pods=5",
        &["pod a", "pod b", "used pods 4", "- pod b", "1"],
        "pods=1",
    );
    // Nothing of the kinds that it is about.
    check(
        "pods=5",
        &["pod a", "claim b", "used pods 4", "- claim b", "1"],
        "pods=4",
    );
    check(
        "pods=5 requests.storage=9Gi",
        &["pod a", "claim b", "used pods 4", "- claim b", "1"],
        "pods=1 requests.storage=0",
    );
    check(
        "pods=5",
        &["pod a", "service b", "used pods 4", "- service b", "1"],
        "pods=4",
    );
    check(
        "pods=5 services=3",
        &["pod a", "service b", "used pods 4", "- service b", "1"],
        "pods=1 services=0",
    );
    let labelled = r#"patch pod a {"metadata": {"labels": {"a": "b"}}}"#;
    check("pods=5", &["pod a", "used pods 4", labelled, "1"], "pods=4");
    let running = r#"status pod a {"status": {"phase": "Running"}}"#;
    check("pods=5", &["pod a", "used pods 4", running, "1"], "pods=4");
    let failed = r#"status pod a {"status": {"phase": "Failed"}}"#;
    check("pods=5", &["pod a", "used pods 4", failed, "1"], "pods=0");
    // What it no longer limits it does not count.
    check("pods=5", &["pod a", "used secrets 4", "301"], "pods=1");
    // What nobody knows is not counted at all.
    check("pods=5 count|things.example.com=3", &["1"], "pods=0");
    check(
        "count|things.example.com=3",
        &["used count/things.example.com 2", "30"],
        "count/things.example.com=2",
    );
}

/// A pod that exists for longer than twice its time is not charged any more.
#[test]
fn pods_that_do_not_go() {
    let pods = "pods=5 count|pods=5";
    check(
        pods,
        &["placed a", "pod b", "- placed a", "15", "- pod b", "1"],
        "count/pods=1 pods=1",
    );
    check(
        pods,
        &["placed a", "pod b", "- placed a", "21", "- pod b", "1"],
        "count/pods=1 pods=0",
    );
    // Nobody looks before something else is counted.
    check(pods, &["placed a", "- placed a", "30"], "count/pods=1 pods=1");
    check(pods, &["placed a", "- placed a", "60"], "count/pods=0 pods=0");
}
