//! Rows of files that outlive pods: on PersistentVolumes and on nodes.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{play_on, sh, with};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The steps that run a pod to its end.
fn run(name: &str, node: &str, volume: &Value, script: &str, phase: &str) -> [Value; 2] {
    let container = with(
        sh("a", script),
        json!({"volumeMounts": [{"name": "v", "mountPath": "/data/"}]}),
    );
    let volume = with(json!({"name": "v"}), volume.clone());
    let spec =
        json!({"restartPolicy": "Never", "nodeName": node, "volumes": [volume], "containers": [container]});
    [
        json!({"do": format!("POST {PODS}"), "body": {"metadata": {"name": name}, "spec": spec}, "code": 201}),
        json!({"wait": 60, "do": format!("GET {PODS}/{name}"), "has": {"/status/phase": phase}}),
    ]
}

/// A pod on one node writes a file; then a pod on another, or the same one, reads it.
#[rstest]
#[case::claim(json!({"persistentVolumeClaim": {"claimName": "c"}}), "node2", "Succeeded")]
#[case::another_claim(json!({"persistentVolumeClaim": {"claimName": "d"}}), "node1", "Failed")]
#[case::same_node(json!({"hostPath": {"path": "/srv/x"}}), "node1", "Succeeded")]
#[case::other_node(json!({"hostPath": {"path": "/srv/x"}}), "node2", "Failed")]
#[case::other_directory(json!({"hostPath": {"path": "/srv"}}), "node1", "Failed")]
#[case::for_the_pod(json!({"emptyDir": {}}), "node1", "Failed")]
fn files_outlive_pods(#[case] volume: Value, #[case] node: &str, #[case] phase: &str) {
    let claim = |name: &str| {
        json!({"do": "POST /api/v1/namespaces/default/persistentvolumeclaims", "code": 201, "body": {"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}})
    };
    let class = json!({"do": "POST /apis/storage.k8s.io/v1/storageclasses", "code": 201, "body": {
        "metadata": {"name": "standard"}, "provisioner": "e.com/disks"}});
    let writes = match volume.get("hostPath") {
        Some(_) => json!({"hostPath": {"path": "/srv/x"}}),
        None if volume.get("emptyDir").is_some() => volume.clone(),
        None => json!({"persistentVolumeClaim": {"claimName": "c"}}),
    };
    let mut steps = vec![class, claim("c"), claim("d")];
    steps.extend(run("writes", "node1", &writes, "echo x > /data/f", "Succeeded"));
    steps.extend(run("reads", node, &volume, "cat /data/f", phase));
    play_on(2, true, Value::from(steps));
}
