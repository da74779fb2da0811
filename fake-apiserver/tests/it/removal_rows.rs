//! Rows of pods that no kubelet removes: changes of pods and their nodes, and the remaining pods some seconds later. The real
//! controller looks around every 20 s: pods that are here after 40 s are there after 40 to 60, and those after 20 s within that
//! time.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// The pods: name, phase, the reason of its disruption; `-` after a deleted one.
async fn shown(cluster: &Cluster) -> String {
    let (_, list) = request(cluster, "GET", PODS, &Value::Null).await;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let lines = pods.iter().map(|pod| {
        let text = |pointer: &str| {
            pod.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let disrupted = conditions.filter(|one| one["type"] == "DisruptionTarget");
        let why: String = disrupted
            .filter_map(|one| one["reason"].as_str())
            .map(|why| format!(" {why}"))
            .collect();
        let goes = if pod["metadata"]["deletionTimestamp"].is_string() {
            "-"
        } else {
            ""
        };
        format!("{}{goes} {}{why}", text("/metadata/name"), text("/status/phase"))
    });
    lines.collect::<Vec<String>>().join(", ")
}

/// `node NAME`, `drop NAME` (the node), `broken NAME` (out of service), `pod NAME [NODE]`, `held NAME [NODE]` (with a finalizer), `phase NAME PHASE`,
/// `delete NAME`, or seconds that pass.
async fn act(cluster: &Cluster, step: &str) {
    let words: Vec<&str> = step.split(' ').collect();
    match words.as_slice() {
        [what @ ("node" | "broken"), name] => {
            let mut node = json!({"metadata": {"name": name}});
            if *what == "broken" {
                let taint =
                    json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "value": "x"});
                node["spec"]["taints"] = json!([taint]);
            }
            let (code, answer) = request(cluster, "POST", NODES, &node).await;
            assert_eq!(code, 201, "{answer}");
        }
        ["drop", name] => {
            request(cluster, "DELETE", &format!("{NODES}/{name}"), &Value::Null).await;
        }
        [what @ ("pod" | "held"), name, node @ ..] => {
            let finalizers = if *what == "held" {
                json!(["e.com/f"])
            } else {
                json!([])
            };
            let tolerations = json!([{"operator": "Exists"}]);
            let mut spec =
                json!({"tolerations": tolerations, "containers": [{"name": "c", "image": "nginx:1"}]});
            match node.first() {
                Some(node) => spec["nodeName"] = json!(node),
                // No scheduler is to have it.
                None => spec["schedulerName"] = json!("nobody"),
            }
            let pod = json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": spec});
            let (code, answer) = request(cluster, "POST", PODS, &pod).await;
            assert_eq!(code, 201, "{answer}");
        }
        ["phase", name, phase] => {
            let path = format!("{PODS}/{name}/status");
            let body = json!({"status": {"phase": phase}});
            send(cluster, "PATCH", &path, "application/merge-patch+json", &body).await;
        }
        ["delete", name] => {
            request(cluster, "DELETE", &format!("{PODS}/{name}"), &Value::Null).await;
        }
        [seconds] => {
            let seconds: u64 = seconds.parse().expect("seconds");
            cluster.run_for(Duration::from_secs(seconds)).await;
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(steps: &[&str], expected: &str) {
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let told = steps.join("; ");
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        for step in &steps {
            act(&cluster, step).await;
        }
        *slot = shown(&cluster).await;
    });
    assert_eq!(found, expected, "{told}");
}

#[test]
fn pods_whose_node_is_not_there() {
    check(&["pod p x", "39"], "p Pending");
    check(&["pod p x", "41"], "");
    check(&["held p x", "41"], "p- Failed DeletionByPodGC");
    // One that has ended has done so by itself.
    check(&["held p x", "phase p Succeeded", "41"], "p- Succeeded");
    check(&["held p x", "phase p Failed", "41"], "p- Failed");
    check(
        &["held p x", "phase p Running", "41"],
        "p- Failed DeletionByPodGC",
    );
    check(&["pod p x", "30", "node x", "60"], "p Pending");
    check(&["node x", "pod p x", "60"], "p Pending");
    check(&["node x", "pod p x", "5", "drop x", "39"], "p Pending");
    check(&["node x", "pod p x", "5", "drop x", "41"], "");
    check(
        &["node x", "pod p x", "5", "drop x", "20", "node x", "60"],
        "p Pending",
    );
    check(&["node y", "pod p x", "pod q y", "41"], "q Pending");
    check(&["pod p x", "pod q x", "41"], "");
    // Those on no node are nobody's orphans.
    check(&["pod p", "100"], "p Pending");
}

#[test]
fn pods_that_nobody_lets_go() {
    check(&["held p", "delete p", "19"], "p- Pending");
    check(&["held p", "delete p", "21"], "p- Failed");
    check(&["held p", "phase p Succeeded", "delete p", "21"], "p- Succeeded");
    check(&["broken x", "pod p x", "delete p", "19"], "p- Pending");
    check(&["broken x", "pod p x", "delete p", "21"], "");
    check(&["broken x", "held p x", "delete p", "21"], "p- Failed");
    check(&["broken x", "pod p x", "60"], "p Pending");
    // A node that only does not answer may still run it.
    check(&["node x", "pod p x", "delete p", "120"], "p- Pending");
}
