//! Pods that a client has bound to a node without a scheduler: the causes of their waiting, and the pods that make room for them.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const DEVICES: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

async fn post(cluster: &Cluster, path: &str, object: Value) {
    let (code, answer) = request(cluster, "POST", path, &object).await;
    assert_eq!(code, 201, "{answer}");
}

/// A pod on the first node.
async fn bind(cluster: &Cluster, name: &str, more: Value) {
    let mut spec = json!({"nodeName": "node1", "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "nginx:1"}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    post(cluster, PODS, pod).await;
}

/// The phase of a pod, the reason of its failure or of its container's waiting, and its condition of disruption.
async fn shown(cluster: &Cluster, name: &str) -> String {
    let (_, pod) = request(cluster, "GET", &format!("{PODS}/{name}"), &Value::Null).await;
    let text = |path: &str| {
        pod.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let conditions = pod["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let disruption = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .map(|condition| condition["reason"].as_str().unwrap_or_default().to_owned());
    let parts = [
        text("/status/phase"),
        text("/status/reason"),
        text("/status/containerStatuses/0/state/waiting/reason"),
        disruption.unwrap_or_default(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Whether something has been said of a pod.
async fn is_said(cluster: &Cluster, name: &str, reason: &str, said: &str) -> bool {
    let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}");
    let (_, events) = request(cluster, "GET", &path, &Value::Null).await;
    let events = events["items"].as_array().cloned().unwrap_or_default();
    events.iter().any(|event| {
        event["reason"] == reason && event["message"].as_str().is_some_and(|text| text.contains(said))
    })
}

#[test]
fn volumes_that_are_claimed_are_waited_for() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]);
        bind(&cluster, "p", json!({"volumes": volumes})).await;
        cluster.run_for(Duration::from_secs(5)).await;
        assert_eq!(shown(&cluster, "p").await, "Pending ContainerCreating");
        let missing = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process \
                       volumes=[data]: error processing PVC default/c: failed to fetch PVC from API server: \
                       persistentvolumeclaims \"c\" not found";
        assert!(is_said(&cluster, "p", "FailedMount", missing).await);

        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}},
        });
        post(&cluster, CLAIMS, claim).await;
        cluster.run_for(Duration::from_secs(30)).await;
        assert_eq!(shown(&cluster, "p").await, "Pending ContainerCreating");
        let unbound = "error processing PVC default/c: PVC is not bound";
        assert!(is_said(&cluster, "p", "FailedMount", unbound).await);

        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"}},
        });
        post(&cluster, "/api/v1/persistentvolumes", volume).await;
        cluster.run_for(Duration::from_secs(40)).await;
        assert_eq!(shown(&cluster, "p").await, "Running");
    });
}

#[test]
fn devices_that_are_claimed_are_waited_for() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let claims = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        bind(&cluster, "p", json!({"resourceClaims": claims})).await;
        cluster.run_for(Duration::from_secs(5)).await;
        assert_eq!(shown(&cluster, "p").await, "Pending ContainerCreating");
        let reason = "FailedPrepareDynamicResources";
        let missing = "Failed to prepare dynamic resources: prepare dynamic resources: fetch ResourceClaim c: \
                       resourceclaims.resource.k8s.io \"c\" not found";
        assert!(is_said(&cluster, "p", reason, missing).await);

        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
        });
        post(&cluster, DEVICES, claim).await;
        cluster.run_for(Duration::from_secs(60)).await;
        assert_eq!(shown(&cluster, "p").await, "Pending ContainerCreating");
        assert!(is_said(&cluster, "p", reason, "is not allowed to use ResourceClaim c").await);
    });
}

#[test]
fn critical_pods_make_themselves_room() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let asks =
            |cpu: &str| json!([{"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": cpu}}}]);
        bind(&cluster, "small", json!({"containers": asks("1")})).await;
        bind(&cluster, "large", json!({"containers": asks("6")})).await;
        cluster.run_for(Duration::from_secs(5)).await;
        // Others are refused as ever.
        bind(&cluster, "plain", json!({"containers": asks("4")})).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let critical = "system-node-critical";
        let spec = json!({"containers": asks("4"), "priorityClassName": critical});
        bind(&cluster, "critical", spec).await;
        cluster.run_for(Duration::from_secs(20)).await;
        assert_eq!(shown(&cluster, "plain").await, "Failed OutOfcpu");
        assert_eq!(shown(&cluster, "small").await, "Running");
        assert_eq!(shown(&cluster, "critical").await, "Running");
        let gone = "Failed Preempting TerminationByKubelet";
        assert_eq!(shown(&cluster, "large").await, gone);
        let said = "Preempted in order to admit critical pod";
        assert!(is_said(&cluster, "large", "Preempting", said).await);

        // Where all others are as critical, there is nobody to go.
        let spec = json!({"containers": asks("7"), "priorityClassName": critical});
        bind(&cluster, "second", spec).await;
        cluster.run_for(Duration::from_secs(20)).await;
        assert_eq!(shown(&cluster, "second").await, "Failed UnexpectedAdmissionError");
        assert_eq!(shown(&cluster, "small").await, "Running");
    });
}
