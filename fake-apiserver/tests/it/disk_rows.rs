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

/// One pod that looks at its own files.
#[rstest]
#[case::mode_of_all(json!({"configMap": {"name": "m", "defaultMode": 256}}), "stat -c %a /data/k | grep -x 400")]
#[case::mode_of_one(json!({"configMap": {"name": "m", "items": [{"key": "k", "path": "d/k", "mode": 384}]}}), "stat -c %a /data/d/k | grep -x 600")]
#[case::usual_mode(json!({"configMap": {"name": "m"}}), "stat -c %a /data/k | grep -x 644")]
#[case::token(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "a"}}]}}), "test -s /data/token")]
#[case::file_of_the_node(json!({"hostPath": {"path": "/etc/hosts", "type": "File"}}), "grep localhost /data")]
#[case::new_file_of_the_node(json!({"hostPath": {"path": "/srv/f", "type": "FileOrCreate"}}), "test -f /data")]
#[case::image(json!({"image": {"reference": "registry.k8s.io/e2e-test-images/kitten:1.8"}}), "grep kitten.jpg /data/data.json")]
#[case::account(json!({"emptyDir": {}}), "test -s /var/run/secrets/kubernetes.io/serviceaccount/token && grep -x default /var/run/secrets/kubernetes.io/serviceaccount/namespace")]
#[case::user(json!({"emptyDir": {}}), "id | grep -x 'uid=0(root) gid=0(root) groups=0(root)'")]
#[case::bytes(json!({"emptyDir": {}}), "echo -n abc > /tmp/x; hexdump -C /tmp/x | grep '61 62 63' | grep '|abc|'")]
#[case::links(json!({"emptyDir": {}}), "ip link add dummy0 type dummy 2>&1 | grep 'Operation not permitted'")]
#[case::chance(json!({"emptyDir": {}}), "a=$RANDOM; b=$RANDOM; test -n \"$a\" && test \"$a\" -lt 32768 && test \"$a\" != \"$b\"")]
#[case::limits(json!({"emptyDir": {}}), "head -n 1 /sys/fs/cgroup/cpu.max | grep -x 'max 100000'")]
#[case::limits_are_listed(json!({"emptyDir": {}}), "ls /sys/fs/cgroup | grep memory.max")]
#[case::limits_are_not_written(json!({"emptyDir": {}}), "! echo 1 > /sys/fs/cgroup/cpu.max")]
fn a_pod_looks_at_its_files(#[case] volume: Value, #[case] script: &str) {
    let map = json!({"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "body": {"metadata": {"name": "m"}, "data": {"k": "v"}}});
    let mut steps = vec![map];
    steps.extend(run("looks", "node1", &volume, script, "Succeeded"));
    play_on(1, true, Value::from(steps));
}
