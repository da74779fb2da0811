//! Probes of nodes, whose results a test writes as OpenKruise's daemon would, and the end of sidecars.

use std::time::Duration;

use controller::process::gates::FeatureGates;
use controller::{Manager, Options};
use fake_apiserver::Cluster;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

/// A cluster with one node, and a manager with these gates.
async fn cluster(gates: &str) -> Cluster {
    let gates = FeatureGates::parse(gates).expect("gates");
    let mut builder = Cluster::builder().seed(1).nodes(1);
    for definition in controller::crds(&gates) {
        builder = builder.object(definition);
    }
    let cluster = builder.start().await.expect("a cluster");
    let options = Options {
        clock: cluster.clock(),
        gates,
        ..Options::default()
    };
    tokio::spawn(Manager::new(cluster.client(), options).run(std::future::pending::<()>()));
    cluster.run_for(Duration::from_secs(2)).await;
    cluster
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn namespaced(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &resource(group, version, kind))
}

async fn create(api: &Api<DynamicObject>, object: Value) {
    let object = shared_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("made");
}

/// A value in an object; `null` if the object or the value is not there.
async fn at(api: &Api<DynamicObject>, name: &str, pointer: &str) -> Value {
    let Some(object) = api.get_opt(name).await.expect("an answer") else {
        return Value::Null;
    };
    let object = shared_json::to_value(&object).expect("JSON");
    object.pointer(pointer).cloned().unwrap_or_default()
}

fn marker() -> Value {
    let policy = json!([{ "state": "Succeeded", "labels": { "up": "true" } }, { "state": "Failed", "labels": { "up": "false" } }]);
    let probe = json!({ "name": "p", "containerName": "main", "podConditionType": "game.io/up", "markerPolicy": policy,
        "probe": { "httpGet": { "path": "/", "port": "http", "scheme": "HTTP" } } });
    json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": { "name": "m" },
        "spec": { "selector": { "matchLabels": { "app": "x" } }, "probes": [probe] } })
}

fn pod() -> Value {
    let container = json!({ "name": "main", "image": "nginx:alpine", "ports": [{ "name": "http", "containerPort": 80 }] });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": { "app": "x" } },
        "spec": { "terminationGracePeriodSeconds": 1, "containers": [container] } })
}

/// The daemon's report of the only probe.
fn result(uid: &Value, state: &str, message: &str) -> Patch<Value> {
    let result = json!({ "name": "m#p", "state": state, "message": message,
        "lastProbeTime": "2024-01-01T00:00:01Z", "lastTransitionTime": "2024-01-01T00:00:01Z" });
    let pod = json!({ "name": "a", "namespace": "default", "uid": uid, "probeStates": [result] });
    Patch::Merge(json!({ "status": { "podProbeStatuses": [pod] } }))
}

/// The status and the message of the pod's condition `game.io/up`.
async fn condition(pods: &Api<DynamicObject>) -> (String, String) {
    let conditions = at(pods, "a", "/status/conditions").await;
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == "game.io/up");
    let text = |field: &str| {
        let value = found.and_then(|condition| condition.get(field)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    (text("status"), text("message"))
}

#[tokio::test(start_paused = true)]
async fn results_of_probes_mark_pods() {
    let cluster = cluster("").await;
    let client = cluster.client();
    let markers = namespaced(&client, "apps.kruise.io", "v1alpha1", "PodProbeMarker");
    let pods = namespaced(&client, "", "v1", "Pod");
    let probes: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &resource("apps.kruise.io", "v1alpha1", "NodePodProbe"),
    );
    create(&markers, marker()).await;
    create(&pods, pod()).await;
    cluster.run_for(Duration::from_secs(10)).await;
    let first = "/spec/podProbes/0";
    assert_eq!(
        at(&probes, "node1", &format!("{first}/probes/0/name")).await,
        json!("m#p")
    );
    let port = at(&probes, "node1", &format!("{first}/probes/0/probe/httpGet/port")).await;
    assert_eq!(port, json!(80), "the port by its number");
    let ip = at(&pods, "a", "/status/podIP").await;
    assert_eq!(at(&probes, "node1", &format!("{first}/IP")).await, ip);
    assert_eq!(at(&markers, "m", "/status/matchedPods").await, json!(1));

    let uid = at(&pods, "a", "/metadata/uid").await;
    for (state, message, condition_then, label) in [
        ("Succeeded", "ok", ("True", "ok"), json!("true")),
        ("Unknown", "", ("False", ""), Value::Null),
        ("Failed", "404", ("False", "404"), json!("false")),
    ] {
        let params = PatchParams::default();
        let patch = result(&uid, state, message);
        probes
            .patch_status("node1", &params, &patch)
            .await
            .expect("patched");
        cluster.run_for(Duration::from_secs(2)).await;
        let (status, text) = condition(&pods).await;
        assert_eq!((status.as_str(), text.as_str()), condition_then, "{state}");
        assert_eq!(at(&pods, "a", "/metadata/labels/up").await, label, "{state}");
    }

    markers
        .delete("m", &DeleteParams::default())
        .await
        .expect("deleted");
    cluster.run_for(Duration::from_secs(2)).await;
    assert_eq!(
        at(&markers, "m", "/metadata/name").await,
        Value::Null,
        "the finalizer is gone"
    );
    assert_eq!(at(&probes, "node1", first).await, Value::Null);
    assert_eq!(
        at(&pods, "a", "/metadata/labels/up").await,
        json!("false"),
        "marks stay"
    );
}

#[tokio::test(start_paused = true)]
async fn probes_go_with_their_pods_and_nodes() {
    let cluster = cluster("").await;
    let client = cluster.client();
    let pods = namespaced(&client, "", "v1", "Pod");
    let probes: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &resource("apps.kruise.io", "v1alpha1", "NodePodProbe"),
    );
    create(
        &namespaced(&client, "apps.kruise.io", "v1alpha1", "PodProbeMarker"),
        marker(),
    )
    .await;
    create(&pods, pod()).await;
    cluster.run_for(Duration::from_secs(10)).await;
    assert_eq!(at(&probes, "node1", "/spec/podProbes/0/name").await, json!("a"));
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    cluster.run_for(Duration::from_secs(10)).await;
    assert_eq!(at(&probes, "node1", "/spec/podProbes/0").await, Value::Null);
    assert_eq!(at(&probes, "node1", "/metadata/name").await, json!("node1"));
    let nodes: Api<DynamicObject> = Api::all_with(client.clone(), &resource("", "v1", "Node"));
    cluster.disconnect_node("node1").await.expect("disconnected");
    nodes
        .delete("node1", &DeleteParams::default())
        .await
        .expect("deleted");
    cluster.run_for(Duration::from_secs(2)).await;
    assert_eq!(at(&probes, "node1", "/metadata/name").await, Value::Null);
}

/// The pod of a job: `main` ends after two seconds, `side` does not.
fn job_pod() -> Value {
    let side = json!([{ "name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true" }]);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "j" },
        "spec": { "restartPolicy": "Never", "containers": [
            { "name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 2"] },
            { "name": "side", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 100000"], "env": side }] } })
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_the_sidecar_of_a_job() {
    let cluster = cluster("SidecarTerminator=true").await;
    let client = cluster.client();
    let pods = namespaced(&client, "", "v1", "Pod");
    let requests = namespaced(&client, "apps.kruise.io", "v1alpha1", "ContainerRecreateRequest");
    create(&pods, job_pod()).await;
    cluster.run_for(Duration::from_secs(1)).await;
    let uid = at(&pods, "j", "/metadata/uid").await;
    let name = format!("sidecar-termination-{}", uid.as_str().expect("a uid"));
    assert_eq!(at(&requests, &name, "/spec").await, Value::Null, "main runs");
    cluster.run_for(Duration::from_secs(10)).await;
    let spec = at(&requests, &name, "/spec").await;
    assert_eq!(
        spec,
        json!({ "podName": "j", "containers": [{ "name": "side" }],
            "strategy": { "failurePolicy": "Ignore", "forceRecreate": true } })
    );
    assert_eq!(at(&requests, &name, "/metadata/ownerReferences/0/uid").await, uid);
    let events = namespaced(&client, "", "v1", "Event");
    let events = events.list(&ListParams::default()).await.expect("events");
    let text = "Kruise SidecarTerminator is trying to terminate sidecar [side] using crr";
    let told = events.items.iter().filter(|event| event.data["message"] == text);
    assert_eq!(told.count(), 1);
}
