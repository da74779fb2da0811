//! Rows of disruption budgets: a budget, changes of its pods, and the resulting status, pods and events.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Merges into a status.
async fn say(cluster: &Cluster, path: &str, status: Value) {
    let kind = "application/merge-patch+json";
    let body = json!({"status": status});
    let (code, answer) = send(cluster, "PATCH", &format!("{path}/status"), kind, &body).await;
    assert_eq!(code, 200, "{answer}");
}

/// * `pod NAME`: a pod that is ready, `unready NAME`: one that is not, `held NAME`: one with a finalizer;
/// * `allow NAME`: the budget says that its eviction was allowed when it was made, and by now it counts as done;
/// * `target NAME [REASON]`: it says that it is about to go; `phase NAME PHASE`;
/// * `evict NAME CODE`, `delete NAME`, `budget NAME` (one more), or seconds that pass.
async fn act(cluster: &Cluster, step: &str) {
    let words: Vec<&str> = step.split(' ').collect();
    match words.as_slice() {
        [kind @ ("pod" | "unready" | "held"), name] => {
            let finalizers = if *kind == "held" {
                json!(["e.com/f"])
            } else {
                json!([])
            };
            let body = json!({
                "metadata": {"name": name, "labels": {"app": "a"}, "finalizers": finalizers},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
            });
            request(cluster, "POST", PODS, &body).await;
            let ready = if *kind == "unready" { "False" } else { "True" };
            let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
            say(cluster, &format!("{PODS}/{name}"), status).await;
        }
        ["allow", name] => {
            let path = format!("{BUDGETS}/b");
            let (_, budget) = request(cluster, "GET", &path, &Value::Null).await;
            let since = &budget["metadata"]["creationTimestamp"];
            say(cluster, &path, json!({"disruptedPods": {*name: since}})).await;
        }
        ["target", name, reason @ ..] => {
            let path = format!("{PODS}/{name}");
            let (_, pod) = request(cluster, "GET", &path, &Value::Null).await;
            let target = json!({
                "type": "DisruptionTarget", "status": "True", "reason": reason.first(),
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            });
            let ready = json!({"type": "Ready", "status": "True"});
            say(cluster, &path, json!({"conditions": [ready, target]})).await;
        }
        ["phase", name, phase] => say(cluster, &format!("{PODS}/{name}"), json!({"phase": phase})).await,
        ["evict", name, expected] => {
            let path = format!("{PODS}/{name}/eviction");
            let (code, answer) = request(cluster, "POST", &path, &json!({"metadata": {"name": name}})).await;
            assert_eq!(code.to_string(), *expected, "{answer}");
        }
        ["delete", name] => {
            request(cluster, "DELETE", &format!("{PODS}/{name}"), &Value::Null).await;
        }
        ["budget", name] => make(cluster, name, json!({"minAvailable": 0})).await,
        [seconds] => {
            let seconds: u64 = seconds.parse().expect("seconds");
            cluster.run_for(Duration::from_secs(seconds)).await;
        }
        other => panic!("{other:?}"),
    }
}

async fn make(cluster: &Cluster, name: &str, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"app": "a"}});
    let body = json!({"metadata": {"name": name}, "spec": spec});
    let (code, answer) = request(cluster, "POST", BUDGETS, &body).await;
    assert_eq!(code, 201, "{answer}");
}

/// `allowed healthy/desired/expected`, evictions that count, the pods' conditions of disruption (`-` after deleted ones), and
/// the events.
async fn shown(cluster: &Cluster) -> String {
    let (_, budget) = request(cluster, "GET", &format!("{BUDGETS}/b"), &Value::Null).await;
    let status = &budget["status"];
    let mut out = vec![format!(
        "{} {}/{}/{}",
        status["disruptionsAllowed"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"]
    )];
    let allowed = status["disruptedPods"].as_object().into_iter().flatten();
    out.extend(allowed.map(|(name, _)| format!("allowed {name}")));
    let (_, pods) = request(cluster, "GET", PODS, &Value::Null).await;
    for pod in pods["items"].as_array().into_iter().flatten() {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let goes = if pod["metadata"]["deletionTimestamp"].is_string() {
            "-"
        } else {
            ""
        };
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        for told in conditions.filter(|told| told["type"] == "DisruptionTarget") {
            let words = ["status", "reason"].map(|field| told[field].as_str().unwrap_or_default());
            out.push(format!("{name}{goes} {}", words.join(" ").trim_end()));
        }
    }
    let (_, events) = request(cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
    let mut told: Vec<String> = events["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|event| event["source"]["component"] == "controllermanager")
        .map(|event| {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            format!("{} of {}", text("/reason"), text("/involvedObject/name"))
        })
        .collect();
    told.sort();
    told.dedup();
    out.extend(told);
    out.join(", ")
}

#[track_caller]
fn check(spec: Value, steps: &[&str], expected: &str) {
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let told = format!("{spec} {steps:?}");
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        make(&cluster, "b", spec).await;
        for step in steps {
            act(&cluster, &step).await;
            cluster.run_for(Duration::from_secs(1)).await;
        }
        *slot = shown(&cluster).await;
    });
    assert_eq!(found, expected, "{told}");
}

fn at_least(pods: Value) -> Value {
    json!({"minAvailable": pods})
}

#[test]
fn pods_come_and_go() {
    let none = "NoPods of b";
    check(at_least(json!(1)), &["1"], &format!("0 0/1/0, {none}"));
    check(
        at_least(json!(1)),
        &["pod p", "pod q"],
        &format!("1 2/1/2, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "unready q"],
        &format!("0 1/1/2, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "delete q"],
        &format!("0 1/1/1, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "delete p"],
        &format!("0 0/1/0, {none}"),
    );
    // One that goes is there, and not healthy.
    check(
        at_least(json!(1)),
        &["pod p", "held q", "delete q"],
        &format!("0 1/1/2, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "phase q Failed"],
        &format!("1 2/1/2, {none}"),
    );
    check(
        at_least(json!("50%")),
        &["pod p", "pod q"],
        &format!("0 2/0/0, {none}, UnmanagedPods of b"),
    );
    check(
        json!({"maxUnavailable": 1}),
        &["pod p"],
        &format!("0 1/0/0, {none}, UnmanagedPods of b"),
    );
}

#[test]
fn evictions_that_were_allowed() {
    let none = "NoPods of b";
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "evict p 201"],
        &format!("0 1/1/1, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "held q", "evict q 201"],
        &format!("0 1/1/2, q- True EvictionByEvictionAPI, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "held q", "evict q 201", "evict p 429"],
        &format!("0 1/1/2, q- True EvictionByEvictionAPI, {none}"),
    );
    // What was allowed and has not happened counts for two minutes.
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "allow q", "100"],
        &format!("0 1/1/2, allowed q, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "allow q", "100", "evict p 429"],
        &format!("0 1/1/2, allowed q, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "allow q", "118"],
        &format!("1 2/1/2, {none}, NotDeleted of q"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "118", "allow q"],
        &format!("1 2/1/2, {none}, NotDeleted of q"),
    );
    // One that goes in time was not in vain, whether it is gone by then or not.
    check(
        at_least(json!(1)),
        &["pod p", "held q", "allow q", "delete q", "130"],
        &format!("0 1/1/2, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "allow q", "delete q", "130"],
        &format!("0 1/1/1, {none}"),
    );
    check(
        at_least(json!(1)),
        &["pod p", "pod q", "allow x", "1"],
        &format!("1 2/1/2, {none}"),
    );
}

#[test]
fn pods_that_are_about_to_go() {
    let none = "NoPods of b";
    let few = |rest: &str| format!("1 1/0/1, {rest}, {none}");
    let min = || at_least(json!(0));
    check(
        min(),
        &["pod p", "target p PreemptionByScheduler", "100"],
        &few("p True PreemptionByScheduler"),
    );
    check(
        min(),
        &["pod p", "target p PreemptionByScheduler", "118"],
        &few("p False"),
    );
    check(min(), &["pod p", "target p", "130"], &few("p False"));
    // Long since.
    check(min(), &["pod p", "130", "target p", "0"], &few("p False"));
    // Nodes take their time.
    check(
        min(),
        &["pod p", "target p TerminationByKubelet", "130"],
        &few("p True TerminationByKubelet"),
    );
    check(
        min(),
        &["pod p", "phase p Failed", "target p", "130"],
        &few("p True"),
    );
    check(
        min(),
        &["pod p", "target p", "phase p Succeeded", "130"],
        &few("p True"),
    );
    check(
        min(),
        &["held p", "target p", "delete p", "130"],
        &format!("0 0/0/1, p- True, {none}"),
    );
    // Said again later, it counts anew.
    check(
        min(),
        &["pod p", "target p", "130", "target p", "0"],
        &few("p False"),
    );
}

#[test]
fn several_budgets() {
    let several = "MultiplePodDisruptionBudgets of p, NoPods of b";
    check(
        at_least(json!(0)),
        &["budget c", "pod p"],
        &format!("1 1/0/1, {several}, NoPods of c"),
    );
    // Nobody looks at the pod when the budget comes later.
    check(at_least(json!(0)), &["pod p", "budget c"], "1 1/0/1, NoPods of b");
    check(
        at_least(json!(0)),
        &["pod p", "budget c", "phase p Failed"],
        &format!("1 1/0/1, {several}"),
    );
    check(
        at_least(json!(0)),
        &["pod p", "budget c", "evict p 500"],
        "1 1/0/1, NoPods of b",
    );
}

/// A change of a pod concerns all of its budgets; an event says that there are several while the pod exists. (In the real one it
/// concerns one of them, and all get the event when it is deleted, too.)
#[test]
fn budgets_that_share_a_pod() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        for name in ["b", "c"] {
            make(&cluster, name, at_least(json!(0))).await;
        }
        let healthy = async |cluster: &Cluster| {
            let (_, list) = request(cluster, "GET", BUDGETS, &Value::Null).await;
            let budgets = list["items"].as_array().cloned().unwrap_or_default();
            let counts = budgets
                .iter()
                .map(|budget| budget["status"]["currentHealthy"].to_string());
            counts.collect::<Vec<String>>().join(" ")
        };
        let told = async |cluster: &Cluster| {
            let path = "/api/v1/namespaces/default/events?fieldSelector=reason=MultiplePodDisruptionBudgets";
            let (_, list) = request(cluster, "GET", path, &Value::Null).await;
            let events = list["items"].as_array().cloned().unwrap_or_default();
            events
                .iter()
                .map(|event| event["count"].as_i64().unwrap_or(1))
                .sum::<i64>()
        };
        for step in ["unready p", "phase p Running"] {
            act(&cluster, step).await;
            cluster.run_for(Duration::from_secs(2)).await;
        }
        assert_eq!(healthy(&cluster).await, "0 0");
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        say(&cluster, &format!("{PODS}/p"), ready).await;
        cluster.run_for(Duration::from_secs(2)).await;
        assert_eq!(healthy(&cluster).await, "1 1");
        let before = told(&cluster).await;
        assert!(before > 0);
        act(&cluster, "delete p").await;
        cluster.run_for(Duration::from_secs(5)).await;
        assert_eq!(healthy(&cluster).await, "0 0");
        assert_eq!(told(&cluster).await, before);
    });
}
