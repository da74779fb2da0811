//! Rows of ReplicaSets and of their predecessors, ReplicationControllers: existing pods, actions, and the resulting owners of
//! the pods. Both follow the same rules. Source: the real controller's `replica_set_test.go`.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

fn path(kind: &str) -> &'static str {
    match kind {
        "ReplicaSet" => "/apis/apps/v1/namespaces/default/replicasets",
        _ => "/api/v1/namespaces/default/replicationcontrollers",
    }
}

/// `pod NAME [LABEL]` makes a pod, `owned NAME` one of another controller; `set N` makes the set of so many, `scale N`; `label NAME LABEL`, `phase NAME PHASE`,
/// `delete NAME`; `*` stands for the first pod that the set has made. A second passes after each.
async fn act(cluster: &Cluster, kind: &str, step: &str) {
    let set = path(kind);
    let mut words: Vec<String> = step.split(' ').map(str::to_owned).collect();
    for word in words.iter_mut().filter(|word| *word == "*") {
        let (_, list) = request(cluster, "GET", PODS, &Value::Null).await;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let made = pods.iter().find(|pod| pod["metadata"]["generateName"] == "s-");
        *word = made
            .and_then(|pod| pod["metadata"]["name"].as_str())
            .expect("a pod")
            .to_owned();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, answer) = match words.as_slice() {
        [what @ ("pod" | "owned"), name, label @ ..] => {
            let label = label.first().unwrap_or(&"a");
            let mut pod = json!({
                "metadata": {"name": name, "labels": {"app": label}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            });
            if *what == "owned" {
                pod["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "e.com/v1", "kind": "Other", "name": "o", "uid": "o", "controller": true,
                }]);
            }
            request(cluster, "POST", PODS, &pod).await
        }
        ["set", size] => {
            let selector = match kind {
                "ReplicaSet" => json!({"matchLabels": {"app": "a"}}),
                _ => json!({"app": "a"}),
            };
            let template = json!({
                "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            });
            let size: Option<u64> = size.parse().ok();
            let spec = json!({"replicas": size, "selector": selector, "template": template});
            request(
                cluster,
                "POST",
                set,
                &json!({"metadata": {"name": "s"}, "spec": spec}),
            )
            .await
        }
        ["scale", size] => {
            let size: u64 = size.parse().expect("a size");
            send(
                cluster,
                "PATCH",
                &format!("{set}/s"),
                MERGE,
                &json!({"spec": {"replicas": size}}),
            )
            .await
        }
        ["label", name, label] => {
            let body = json!({"metadata": {"labels": {"app": label}}});
            send(cluster, "PATCH", &format!("{PODS}/{name}"), MERGE, &body).await
        }
        ["phase", name, phase] => {
            let body = json!({"status": {"phase": phase}});
            send(cluster, "PATCH", &format!("{PODS}/{name}/status"), MERGE, &body).await
        }
        ["delete", name] => {
            let now = json!({"gracePeriodSeconds": 0});
            request(cluster, "DELETE", &format!("{PODS}/{name}"), &now).await
        }
        other => panic!("{other:?}"),
    };
    assert!(code < 300, "{step}: {answer}");
    cluster.run_for(Duration::from_secs(1)).await;
}

/// How many the set says that it has, and the pods: those by name that were made by hand, and how many it has made; `!` after those that are its own.
async fn shown(cluster: &Cluster, kind: &str) -> String {
    let (_, set) = request(cluster, "GET", &format!("{}/s", path(kind)), &Value::Null).await;
    let (_, list) = request(cluster, "GET", PODS, &Value::Null).await;
    let (mut made, mut out) = ([0, 0], vec![set["status"]["replicas"].to_string()]);
    for pod in list["items"].as_array().into_iter().flatten() {
        let owner = pod.pointer("/metadata/ownerReferences/0/name");
        let is_own = owner.is_some_and(|owner| owner == "s");
        if pod["metadata"]["generateName"] == "s-" {
            made[usize::from(is_own)] += 1;
        } else {
            let own = if is_own { "!" } else { "" };
            out.push(format!(
                "{}{own}",
                pod["metadata"]["name"].as_str().unwrap_or_default()
            ));
        }
    }
    let [left, kept] = made;
    out.extend((left > 0).then(|| format!("{left}")));
    out.extend((kept > 0).then(|| format!("{kept}!")));
    out.join(" ")
}

#[track_caller]
fn check(steps: &[&str], expected: &str) {
    for kind in ["ReplicaSet", "ReplicationController"] {
        let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
        let told = format!("{kind} {}", steps.join("; "));
        let mut found = String::new();
        let slot = &mut found;
        simulate(move || async move {
            let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
            cluster.run_for(Duration::from_secs(1)).await;
            for step in &steps {
                act(&cluster, kind, step).await;
            }
            *slot = shown(&cluster, kind).await;
        });
        assert_eq!(found, expected, "{told}");
    }
}

#[test]
fn so_many_pods() {
    check(&["set 2"], "2 2!");
    check(&["set 0"], "0");
    check(&["set -"], "1 1!");
    check(&["set 1", "scale 3"], "3 3!");
    check(&["set 3", "scale 1"], "1 1!");
    check(&["set 3", "scale 0"], "0");
    check(&["set 2", "delete *"], "2 2!");
    // Those that have ended are replaced, and stay.
    check(&["set 1", "phase * Failed"], "1 2!");
    check(&["set 1", "phase * Succeeded"], "1 2!");
    check(&["set 1", "phase * Running"], "1 1!");
}

#[test]
fn whose_pods() {
    check(&["pod p", "set 1"], "1 p!");
    check(&["pod p", "set 2"], "2 p! 1!");
    check(&["pod p b", "set 1"], "1 p 1!");
    check(&["owned p", "set 1"], "1 p 1!");
    // Those that are too many go, wherever they come from.
    check(&["pod p", "pod q", "set 2", "scale 0"], "0");
    check(&["set 1", "pod p", "scale 1"], "1 1!");
    check(&["pod p", "set 0"], "0");
    // Who has ended is not adopted.
    check(&["pod p", "phase p Failed", "set 1"], "1 p 1!");
    check(&["pod p", "phase p Succeeded", "set 1"], "1 p 1!");
    // Whoever it does not select any more is let go, and is replaced.
    check(&["set 1", "label * b"], "1 1 1!");
    check(&["pod p", "set 1", "label p b"], "1 p 1!");
    check(&["pod p", "set 1", "label p b", "delete *", "scale 0"], "0 p");
    // And is taken again: the youngest of three goes.
    check(
        &["pod p", "set 1", "label p b", "scale 2", "label p a"],
        "2 p! 1!",
    );
    check(&["pod p b", "set 1", "label p a", "scale 2"], "2 p! 1!");
}
