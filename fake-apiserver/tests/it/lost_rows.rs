//! Rows of lost nodes: the tolerations of a pod on one, the events, and the state of node and pod then.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const NODE: &str = "/api/v1/nodes/node1";
const POD: &str = "/api/v1/namespaces/default/pods/p";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The node's condition `Ready` and the effects of its taint, and the pod's condition `Ready`; `-` after a pod that goes.
async fn shown(cluster: &Cluster) -> String {
    let ready = |object: &Value| {
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let found = conditions
            .into_iter()
            .find(|condition| condition["type"] == "Ready");
        found.map_or("none".to_owned(), |found| {
            found["status"].as_str().unwrap_or_default().to_owned()
        })
    };
    let (code, node) = request(cluster, "GET", NODE, &Value::Null).await;
    let mut out = if code == 404 {
        "no node".to_owned()
    } else {
        ready(&node)
    };
    for taint in node["spec"]["taints"].as_array().into_iter().flatten() {
        if taint["key"] == UNREACHABLE {
            out = format!("{out} {}", taint["effect"].as_str().unwrap_or_default());
        }
    }
    let (code, pod) = request(cluster, "GET", POD, &Value::Null).await;
    if code == 404 {
        return format!("{out}, no pod");
    }
    let goes = if pod["metadata"]["deletionTimestamp"].is_string() {
        "-"
    } else {
        ""
    };
    format!("{out}, {}{goes}", ready(&pod))
}

/// `lose NODE`, `back NODE`, `delete [0]` (the pod, with that grace), `drop` (the node's object), or seconds that pass.
#[track_caller]
fn check(tolerations: Value, steps: &[&str], expected: &str) {
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let told = format!("{tolerations} {steps:?}");
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"nodeName": "node1", "tolerations": tolerations, "containers": [{"name": "a", "image": "nginx:1"}]},
        });
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(10)).await;
        for step in steps {
            let words: Vec<&str> = step.split(' ').collect();
            match words.as_slice() {
                ["lose", node] => cluster.disconnect_node(node).await.expect("a node"),
                ["back", node] => cluster.reconnect_node(node).expect("a node"),
                ["delete"] => {
                    request(&cluster, "DELETE", POD, &Value::Null).await;
                }
                ["delete", seconds] => {
                    let seconds: u64 = seconds.parse().expect("seconds");
                    request(&cluster, "DELETE", POD, &json!({"gracePeriodSeconds": seconds})).await;
                }
                ["drop"] => {
                    request(&cluster, "DELETE", NODE, &Value::Null).await;
                }
                ["out-of-service"] => {
                    let taint = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "value": "x"});
                    let patch = json!({"spec": {"taints": [taint]}});
                    let kind = "application/strategic-merge-patch+json";
                    send(&cluster, "PATCH", NODE, kind, &patch).await;
                }
                [seconds] => {
                    let seconds: u64 = seconds.parse().expect("seconds");
                    cluster.run_for(Duration::from_secs(seconds)).await;
                }
                other => panic!("{other:?}"),
            }
        }
        *slot = shown(&cluster).await;
    });
    assert_eq!(found, expected, "{told}");
}

fn tolerates(seconds: Value) -> Value {
    let mut toleration = json!({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"});
    if seconds.is_number() {
        toleration["tolerationSeconds"] = seconds;
    }
    json!([toleration])
}

const LOST: &str = "Unknown NoSchedule NoExecute";

#[test]
fn how_long_pods_stay() {
    let lost = |text: &str| format!("{LOST}, {text}");
    check(json!([]), &["lose node1", "40"], "True, True");
    check(json!([]), &["lose node1", "60"], &lost("False"));
    // Five minutes, unless it says something else.
    check(json!([]), &["lose node1", "340"], &lost("False"));
    check(json!([]), &["lose node1", "370"], &lost("False-"));
    check(tolerates(json!(0)), &["lose node1", "70"], &lost("False-"));
    check(tolerates(json!(60)), &["lose node1", "90"], &lost("False"));
    check(tolerates(json!(60)), &["lose node1", "130"], &lost("False-"));
    check(tolerates(Value::Null), &["lose node1", "2000"], &lost("False"));
    check(
        json!([{"operator": "Exists"}]),
        &["lose node1", "2000"],
        &lost("False"),
    );
    check(
        json!([{"key": UNREACHABLE, "operator": "Exists"}]),
        &["lose node1", "2000"],
        &lost("False"),
    );
    // What is tolerated of others counts for others.
    check(
        json!([{"key": "other", "operator": "Exists"}]),
        &["lose node1", "370"],
        &lost("False-"),
    );
    // A node that is all alone in being well is not lost: nothing goes when all are.
    check(
        json!([]),
        &["lose node1", "lose node2", "1000"],
        "Unknown NoSchedule, False",
    );
}

#[test]
fn who_comes_back() {
    check(json!([]), &["lose node1", "30", "back node1", "5"], "True, True");
    check(
        json!([]),
        &["lose node1", "100", "back node1", "15"],
        "True, True",
    );
    check(
        json!([]),
        &["lose node1", "400", "back node1", "15"],
        "True, no pod",
    );
    // The time begins anew with the next loss.
    check(
        json!([]),
        &["lose node1", "300", "back node1", "15", "lose node1", "300"],
        &format!("{LOST}, False"),
    );
    check(
        json!([]),
        &["lose node1", "300", "back node1", "15", "lose node1", "370"],
        &format!("{LOST}, False-"),
    );
}

#[test]
fn what_is_done_to_pods_of_lost_nodes() {
    check(
        json!([]),
        &["lose node1", "60", "delete", "200"],
        &format!("{LOST}, False-"),
    );
    check(json!([]), &["lose node1", "delete", "40"], "True, True-");
    check(
        json!([]),
        &["lose node1", "60", "delete 0", "1"],
        &format!("{LOST}, no pod"),
    );
    check(
        json!([]),
        &["lose node1", "60", "delete", "5", "back node1", "40"],
        "True, no pod",
    );
    check(json!([]), &["lose node1", "60", "drop", "20"], "no node, False");
    check(json!([]), &["lose node1", "60", "drop", "100"], "no node, no pod");
    check(
        tolerates(Value::Null),
        &["lose node1", "60", "delete", "out-of-service", "60"],
        &format!("{LOST}, no pod"),
    );
}

/// A pod that a client deletes while it waits to be evicted. (The real controller then reports that its deletion is cancelled.)
#[test]
fn what_is_said_of_pods_that_are_deleted_meanwhile() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        for name in ["p", "q"] {
            let pod = json!({
                "metadata": {"name": name}, "spec": {"nodeName": "node1", "containers": [{"name": "a", "image": "nginx:1"}]},
            });
            request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        }
        cluster.run_for(Duration::from_secs(10)).await;
        cluster.disconnect_node("node1").await.expect("a node");
        cluster.run_for(Duration::from_secs(60)).await;
        request(&cluster, "DELETE", POD, &json!({"gracePeriodSeconds": 0})).await;
        cluster.run_for(Duration::from_secs(5)).await;
        cluster.reconnect_node("node1").expect("a node");
        cluster.run_for(Duration::from_secs(60)).await;
        let path = "/api/v1/namespaces/default/events?fieldSelector=reason=TaintManagerEviction";
        let (_, list) = request(&cluster, "GET", path, &Value::Null).await;
        let events = list["items"].as_array().cloned().unwrap_or_default();
        let said: Vec<&str> = events
            .iter()
            .filter_map(|event| event["message"].as_str())
            .collect();
        assert_eq!(said, ["Cancelling deletion of Pod default/q"]);
    });
}
