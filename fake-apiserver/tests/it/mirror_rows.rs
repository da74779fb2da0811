//! Rows of mirror pods (of static pods): the allowed creations and changes, and a node's treatment of one
//! that it does not know. Source: the admission of service accounts, the validation of pods, the kubelet's tidying up.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{play, request, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "/api/v1/namespaces/default/pods/p";
const KEY: &str = "kubernetes.io/config.mirror";

/// A mirror on a node with more in its spec, or an ordinary pod.
fn pod(is_mirror: bool, more: Value) -> Value {
    let annotations = if is_mirror { json!({KEY: "h"}) } else { json!({}) };
    let mut spec = json!({"nodeName": "x", "containers": [{"name": "a", "image": "nginx:1"}]});
    spec.merge(&more);
    json!({"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
}

/// The answer to the creation of a mirror like this: the code, and a part of the message.
#[track_caller]
fn making(more: Value, code: u16, said: &str) {
    let (told, said) = (more.to_string(), said.to_owned());
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        cluster.run_for(Duration::from_secs(1)).await;
        let (found, answer) = request(&cluster, "POST", PODS, &pod(true, more)).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(found, code, "{told} {answer}");
        assert!(message.contains(&said), "{told} {message}");
    });
}

#[test]
fn what_mirrors_may_name() {
    let volume = |source: Value| json!({"volumes": [crate::support::with(json!({"name": "v"}), source)]});
    let container = |more: Value| json!({"containers": [crate::support::with(json!({"name": "a", "image": "nginx:1"}), more)]});
    making(json!({}), 201, "");
    making(
        json!({"nodeName": null}),
        422,
        "must set spec.nodeName if mirror pod annotation is set",
    );
    making(
        json!({"serviceAccountName": "default"}),
        403,
        "a mirror pod may not reference service accounts",
    );
    let secrets = "a mirror pod may not reference secrets";
    making(volume(json!({"secret": {"secretName": "s"}})), 403, secrets);
    making(
        volume(json!({"projected": {"sources": [{"secret": {"name": "s"}}]}})),
        403,
        secrets,
    );
    making(json!({"imagePullSecrets": [{"name": "s"}]}), 403, secrets);
    making(
        container(json!({"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]})),
        403,
        secrets,
    );
    making(
        container(json!({"envFrom": [{"secretRef": {"name": "s"}}]})),
        403,
        secrets,
    );
    making(
        volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})),
        403,
        "a mirror pod may not use ServiceAccountToken volume projections",
    );
    making(
        json!({"resourceClaims": [{"name": "r", "resourceClaimName": "c"}]}),
        422,
        "static pods do not support resource claims",
    );
    making(volume(json!({"emptyDir": {}})), 201, "");
    making(volume(json!({"hostPath": {"path": "/x"}})), 201, "");
    making(
        json!({"hostNetwork": true, "priorityClassName": "system-node-critical"}),
        201,
        "",
    );
}

#[test]
fn what_mirrors_are_not_given() {
    let make = |is_mirror: bool| json!({"wait": 1, "do": format!("POST {PODS}"), "body": pod(is_mirror, json!({})), "code": 201});
    let show = |has: Value| json!({"do": format!("GET {POD}"), "has": has});
    // A pod of an account has a token.
    let ordinary =
        json!({"/spec/serviceAccountName": "default", "/spec/containers/0/volumeMounts/0/readOnly": true});
    play(true, json!([make(false), show(ordinary)]));
    let mirror = json!({
        "/spec/serviceAccountName": null, "/spec/volumes": null, "/spec/containers/0/volumeMounts": null,
        "/metadata/annotations/kubernetes.io~1config.mirror": "h",
    });
    play(true, json!([make(true), show(mirror)]));
}

/// The answer to a change of a pod: the code, and the message.
#[track_caller]
fn changing(is_mirror: bool, part: &str, body: Value, code: u16, said: &str) {
    let mut change =
        json!({"do": format!("PATCH {POD}{part}"), "type": "strategic", "body": body, "code": code});
    if !said.is_empty() {
        change["has"] = json!({"/details/causes/0/message": format!("Forbidden: {said}")});
    }
    let make =
        json!({"wait": 1, "do": format!("POST {PODS}"), "body": pod(is_mirror, json!({})), "code": 201});
    play(true, json!([make, change]));
}

#[test]
fn what_changes_of_mirrors() {
    let annotation = |value: Value| json!({"metadata": {"annotations": {KEY: value}}});
    let kept = "may not remove or update mirror pod annotation";
    changing(true, "", annotation(json!("other")), 422, kept);
    changing(true, "", annotation(Value::Null), 422, kept);
    changing(true, "", annotation(json!("h")), 200, "");
    changing(
        false,
        "",
        annotation(json!("h")),
        422,
        "may not add mirror pod annotation",
    );
    changing(true, "", json!({"metadata": {"labels": {"a": "b"}}}), 200, "");
    let debug = || json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "busybox:1"}]}});
    let part = "/ephemeralcontainers";
    changing(
        true,
        part,
        debug(),
        422,
        "static pods do not support ephemeral containers",
    );
    changing(false, part, debug(), 200, "");
    let more = || json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}});
    changing(true, "/resize", more(), 422, "static pods cannot be resized");
}

/// The state of a mirror so many seconds after it was made on a node: `gone`, or its phase (`-` after a deleted one).
#[track_caller]
fn after(node: &str, finalizers: Value, more: Value, seconds: u64, expected: &str) {
    let told = format!("{node} {finalizers} {more} {seconds}");
    let node = node.to_owned();
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut pod = pod(true, more);
        pod["metadata"]["finalizers"] = finalizers;
        pod["spec"]["nodeName"] = json!(node);
        let (code, answer) = request(&cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(seconds)).await;
        let (code, pod) = request(&cluster, "GET", POD, &Value::Null).await;
        let goes = if pod["metadata"]["deletionTimestamp"].is_string() {
            "-"
        } else {
            ""
        };
        *slot = match code {
            404 => "gone".to_owned(),
            _ => format!("{}{goes}", pod["status"]["phase"].as_str().unwrap_or_default()),
        };
        let (_, events) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        // Nothing is said of one, as nothing is done with it.
        let said = events["items"].as_array().into_iter().flatten();
        assert_eq!(
            said.filter(|event| event["source"]["component"] == "kubelet")
                .count(),
            0
        );
    });
    assert_eq!(found, expected, "{told}");
}

#[test]
fn a_node_that_knows_nothing_of_it() {
    let (none, plain) = (|| json!([]), || json!({}));
    after("node1", none(), plain(), 0, "Pending");
    after("node1", none(), plain(), 3, "gone");
    for policy in ["Always", "OnFailure", "Never"] {
        after("node1", none(), json!({"restartPolicy": policy}), 3, "gone");
    }
    // Its own time is not waited for, nor are its volumes.
    after(
        "node1",
        none(),
        json!({"terminationGracePeriodSeconds": 600}),
        3,
        "gone",
    );
    let volumes = json!({"volumes": [{"name": "v", "configMap": {"name": "none"}}]});
    after("node1", none(), volumes, 3, "gone");
    after(
        "node1",
        none(),
        json!({"nodeSelector": {"disk": "none"}}),
        3,
        "gone",
    );
    // Somebody else may hold it.
    after("node1", json!(["e.com/f"]), plain(), 3, "Pending-");
    // Of a node that is not there nobody looks at it until nobody's pods are removed.
    after("other", none(), plain(), 30, "Pending");
    after("other", none(), plain(), 60, "gone");
}
