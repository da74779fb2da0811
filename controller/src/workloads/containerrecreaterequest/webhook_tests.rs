//! Every recorded admission of a request (OpenKruise 1.9.0), and the rules that no recording has.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::kit::json::merge;
use crate::test_admission::{Outcome, admit, admit_whole, recorded};

/// OpenKruise means to refuse it, and does not.
const REFUSED_HERE: &str = "containerrecreaterequest/09-invalid-container-twice";

/// The id of the container in the recordings.
const ID: &str = "containerd://fd796aa9be661a88f3c8560cca0b0bec3597a908310005fa068d3ff22c1093d2";

/// The pod of the recordings, and one that is not scheduled.
fn pods() -> Vec<Value> {
    let pod = |name: &str, node: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "adm", "uid": "u" },
            "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 1,
                "containers": [
                    { "name": "main", "ports": [{ "containerPort": 80 }] },
                    { "name": "waits" },
                    { "name": "hooked", "lifecycle": { "preStop": { "exec": { "command": ["true"] } } } },
                    { "name": "asked", "ports": [{ "containerPort": 80, "name": "http" }],
                        "lifecycle": { "preStop": { "httpGet": { "port": "http" } } } },
                    { "name": "sleeps", "lifecycle": { "preStop": { "sleep": { "seconds": 3 } } } },
                ],
                "initContainers": [{ "name": "nat", "restartPolicy": "Always" }],
            },
            "status": { "containerStatuses": [
                { "name": "main", "containerID": ID, "restartCount": 0, "image": "", "imageID": "", "ready": true },
                { "name": "waits", "restartCount": 0, "image": "", "imageID": "", "ready": false },
                { "name": "hooked", "containerID": ID, "restartCount": 2, "image": "", "imageID": "", "ready": true },
                { "name": "asked", "containerID": ID, "restartCount": 0, "image": "", "imageID": "", "ready": true },
                { "name": "sleeps", "containerID": ID, "restartCount": 0, "image": "", "imageID": "", "ready": true },
            ] },
        })
    };
    vec![pod("adm-pod", "node2"), pod("adm-pending", "")]
}

fn around(pods: &[Value], labels: Value) -> Surroundings {
    let pods = pods
        .iter()
        .map(|pod| serde_json::from_value::<Pod>(pod.clone()).unwrap());
    let node = json!({ "metadata": { "name": "node2", "labels": labels }, "spec": {}, "status": {} });
    let node: CachedNode = serde_json::from_value(node).unwrap();
    Surroundings {
        caches: WebhookCaches::default().with(pods.collect()).with(vec![node]),
        ..Surroundings::alone(FeatureGates::default())
    }
}

#[tokio::test]
async fn answers_as_recorded() {
    let around = around(&pods(), json!({}));
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for row in recorded(include_str!("../../../tests/data/containerrecreaterequest.jsonl")) {
        if row.name == REFUSED_HERE {
            continue;
        }
        compared += 1;
        let got = match &row.old {
            None => admit(&[&WEBHOOKS[0]], &row.object, None, &around).await,
            Some(base) => {
                let old = admit_whole(&[&WEBHOOKS[0]], base, None, &around).await.unwrap();
                let mut new = old.clone();
                merge(&mut new, difference(base, &row.object));
                admit(&[&WEBHOOKS[0]], &new, Some(&old), &around).await
            }
        };
        if got != row.expected {
            wrong.push(format!("{}\n  want {:?}\n  got  {got:?}", row.name, row.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 13);
}

/// The fields of an object that another does not have, or has otherwise.
fn difference(old: &Value, new: &Value) -> Value {
    let Some(fields) = new.as_object() else {
        return new.clone();
    };
    let changed = fields.iter().filter(|(name, value)| old.get(name) != Some(value));
    changed
        .map(|(name, value)| {
            (
                name.clone(),
                difference(old.get(name).unwrap_or(&Value::Null), value),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn request(containers: &[&str], change: Value) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({ "name": name })).collect();
    let mut request = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
        "metadata": { "name": "r", "namespace": "adm" },
        "spec": { "podName": "adm-pod", "containers": containers },
    });
    merge(&mut request, change);
    request
}

async fn asked(request: &Value, pods: &[Value]) -> Outcome {
    admit_whole(&[&WEBHOOKS[0]], request, None, &around(pods, json!({}))).await
}

fn refusal(outcome: Outcome) -> String {
    let (code, message) = outcome.unwrap_err();
    format!("{code} {}", message.split_once("the request: ").unwrap().1)
}

#[rstest]
#[case::no_pod_name(&["main"], json!({ "spec": { "podName": "" } }), "400 podName can not be empty")]
#[case::no_pod(&["main"], json!({ "spec": { "podName": "other" } }), "400 no found Pod named other")]
#[case::unready_grace(&["main"], json!({ "spec": { "strategy": { "unreadyGracePeriodSeconds": -1 } } }),
    "400 unreadyGracePeriodSeconds must be non-negative integer")]
#[case::policy(&["main"], json!({ "spec": { "strategy": { "failurePolicy": "Retry" } } }), "400 unknown failurePolicy Retry")]
#[case::twice(&["main", "main"], json!({}), "400 can not recreate main multi times")]
#[case::no_id(&["waits"], json!({}),
    "400 no containerID in waits containerStatus, maybe the container has not been initialized")]
#[case::native_sidecar(&["nat"], json!({}), "400 not found nat containerStatus in Pod Status")]
#[case::deadline_first(&["main"], json!({ "spec": { "activeDeadlineSeconds": 2, "strategy": { "failurePolicy": "x" } } }),
    "400 activeDeadlineSeconds can not be less than 3s")]
#[tokio::test]
async fn refused(#[case] containers: &[&str], #[case] change: Value, #[case] expect: &str) {
    assert_eq!(
        refusal(asked(&request(containers, change), &pods()).await),
        expect
    );
}

/// The pod of a request.
#[rstest]
#[case::succeeded(json!({ "status": { "phase": "Succeeded" } }),
    Some("400 not allowed to recreate containers in an inactive Pod"))]
#[case::goes(json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:00Z" } }),
    Some("400 not allowed to recreate containers in an inactive Pod"))]
#[case::sidecars_run_on(json!({ "status": { "phase": "Failed",
    "conditions": [{ "type": "SidecarTerminated", "status": "True" }] } }), None)]
#[case::no_node(json!({ "spec": { "nodeName": "" } }), Some("400 not allowed to recreate containers in a pending Pod"))]
#[case::node_is_gone(json!({ "spec": { "nodeName": "other" } }),
    Some("400 failed to get Node other: Node \"other\" not found"))]
#[tokio::test]
async fn pods_of_requests(#[case] change: Value, #[case] expect: Option<&str>) {
    let mut pods = pods();
    merge(&mut pods[0], change);
    let outcome = asked(&request(&["main"], json!({})), &pods).await;
    match expect {
        Some(text) => assert_eq!(refusal(outcome), text),
        None => assert!(outcome.is_ok(), "{outcome:?}"),
    }
}

#[tokio::test]
async fn fills_in_what_the_daemon_needs() {
    let change =
        json!({ "spec": { "strategy": { "unreadyGracePeriodSeconds": 0 }, "activeDeadlineSeconds": 3 } });
    let whole = asked(&request(&["hooked", "asked", "sleeps"], change), &pods())
        .await
        .unwrap();
    let context = |restarts: i32| json!({ "containerID": ID, "restartCount": restarts });
    assert_eq!(
        whole["spec"]["containers"],
        json!([
            { "name": "hooked", "preStop": { "exec": { "command": ["true"] } }, "statusContext": context(2) },
            { "name": "asked", "preStop": { "httpGet": { "port": "http" } },
                "ports": [{ "containerPort": 80, "name": "http" }], "statusContext": context(0) },
            { "name": "sleeps", "preStop": {}, "statusContext": context(0) },
        ])
    );
    let labels = json!({ REQUEST_ACTIVE: "true", REQUEST_NODE: "node2", REQUEST_POD_UID: "u" });
    assert_eq!(whole["metadata"]["labels"], labels);
    let strategy = json!({ "failurePolicy": "Fail", "terminationGracePeriodSeconds": 1, "unreadyGracePeriodSeconds": 0 });
    assert_eq!(whole["spec"]["strategy"], strategy);
}

#[tokio::test]
async fn a_virtual_node_is_named() {
    let around = around(&pods(), json!({ "type": "virtual-kubelet" }));
    let whole = admit_whole(&[&WEBHOOKS[0]], &request(&["main"], json!({})), None, &around)
        .await
        .unwrap();
    assert_eq!(whole["metadata"]["labels"]["type"], "virtual-kubelet");
}

/// A change of the metadata of a request that is there.
#[rstest]
#[case::node(json!({ "labels": { REQUEST_NODE: "x" } }),
    Some("403 not allowed to update immutable label crr.apps.kruise.io/node-name"))]
#[case::ended(json!({ "labels": { REQUEST_ACTIVE: "false" } }), None)]
#[case::annotation(json!({ "annotations": { REQUEST_UNREADY: "2" } }),
    Some("403 not allowed to update immutable annotation crr.apps.kruise.io/unready-acquired"))]
#[tokio::test]
async fn updates(#[case] change: Value, #[case] expect: Option<&str>) {
    let around = around(&pods(), json!({}));
    let noted = json!({ "metadata": { "annotations": { REQUEST_UNREADY: "1" } } });
    let old = admit_whole(&[&WEBHOOKS[0]], &request(&["main"], noted), None, &around)
        .await
        .unwrap();
    let mut new = old.clone();
    merge(&mut new["metadata"], change);
    let outcome = admit(&[&WEBHOOKS[0]], &new, Some(&old), &around).await;
    match expect {
        Some(text) => assert_eq!(refusal(outcome), text),
        None => assert!(outcome.is_ok()),
    }
}

#[tokio::test]
async fn without_the_gate() {
    let around = Surroundings::alone(FeatureGates::parse("KruiseDaemon=false").unwrap());
    let outcome = admit(&[&WEBHOOKS[0]], &request(&["main"], json!({})), None, &around).await;
    assert_eq!(refusal(outcome), "403 feature-gate KruiseDaemon is not enabled");
}
