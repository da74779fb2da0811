//! Rows: the fields of a pod that a cached pod keeps.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Container, ContainerStatus, Pod, Whole};

/// Every field of a pod's metadata but one: a field that is left out here is left out of the cache.
#[test]
fn of_the_metadata_the_managed_fields_alone_are_left_out() {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"a": "1"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30,
            "deletionTimestamp": "2026-01-01T00:00:30Z",
            "finalizers": ["example.com/hold"],
            "generateName": "web-",
            "generation": 3,
            "labels": {"app": "web"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}],
            "name": "web-0",
            "namespace": "default",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true}],
            "resourceVersion": "7",
            "uid": "1",
        },
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    });
    let lean: Pod = serde_json::from_value(pod.clone()).expect("a pod");
    assert_eq!(lean.metadata.managed_fields, None);
    pod["metadata"]["managedFields"].take();
    let whole: Whole = serde_json::from_value(pod).expect("a pod");
    assert_eq!(lean.metadata, whole.metadata);
}

/// Fields that Go leaves out, sends empty and sends as null are all the same, and none of them is an error.
#[rstest]
#[case::left_out(json!({"metadata": {}}))]
#[case::null(json!({"metadata": {"creationTimestamp": null}, "spec": null, "status": null}))]
#[case::null_below(json!({"metadata": {}, "spec": {"nodeName": null, "containers": null, "readinessGates": null},
    "status": {"phase": null, "conditions": null, "containerStatuses": null}}))]
#[case::empty(json!({"metadata": {}, "spec": {"containers": []}, "status": {"conditions": [], "phase": ""}}))]
fn nothing(#[case] pod: Value) {
    assert_eq!(serde_json::from_value::<Pod>(pod).expect("a pod"), Pod::default());
}

#[rstest]
#[case::by_name(json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}), "n1", false)]
#[case::by_label(json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}}}), "", true)]
#[case::among_pods(json!({"podAffinity": {}}), "", false)]
#[case::null(json!(null), "", false)]
fn the_node_that_an_affinity_names(#[case] affinity: Value, #[case] want: &str, #[case] says_more: bool) {
    let pod: Pod =
        serde_json::from_value(json!({"metadata": {}, "spec": {"affinity": affinity}})).expect("a pod");
    assert_eq!(&*pod.spec.required.named, want);
    assert_eq!(!pod.spec.required.terms.is_null(), says_more);
}

#[rstest]
#[case(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}), true)]
#[case(json!({"running": {}}), true)]
#[case(json!({"running": null, "waiting": {"reason": "PodInitializing"}}), false)]
#[case(json!({"terminated": {"exitCode": 0}}), false)]
#[case(json!(null), false)]
fn running(#[case] state: Value, #[case] want: bool) {
    let status: ContainerStatus =
        serde_json::from_value(json!({"name": "main", "state": state})).expect("a status");
    assert_eq!(status.state.running, want);
}

#[rstest]
#[case::the_defaults(json!([
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]), 0, 2)]
#[case::one_more(json!([
    {"key": "k", "operator": "Exists"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
]), 1, 3)]
#[case::for_another_time(json!([
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
]), 1, 3)]
#[case::null(json!(null), 0, 2)]
fn of_the_tolerations_those_of_every_pod_are_left_out(
    #[case] tolerations: Value,
    #[case] own: usize,
    #[case] all: usize,
) {
    let pod: Pod =
        serde_json::from_value(json!({"metadata": {}, "spec": {"tolerations": tolerations}})).expect("a pod");
    assert_eq!(pod.spec.tolerations.as_array().map_or(0, |list| list.len()), own);
    assert_eq!(
        pod.spec.all_tolerations().as_array().map_or(0, |list| list.len()),
        all
    );
}

#[rstest]
#[case(json!([{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 3}, {"name": "c"}]), 5)]
#[case(json!(null), 0)]
fn restarts_of_init_containers(#[case] statuses: Value, #[case] want: i32) {
    let pod = json!({"metadata": {}, "status": {"initContainerStatuses": statuses}});
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    assert_eq!(pod.status.init_restarts, want);
}

#[test]
fn variables_with_a_value_of_their_own_are_left_out() {
    let container: Container = serde_json::from_value(json!({"name": "main", "env": [
        {"name": "PLAIN", "value": "x"},
        {"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['cfg']"}}},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "p_1"}}},
    ]}))
    .expect("a container");
    let names: Vec<&str> = container.env.iter().map(|env| env.name.as_str()).collect();
    assert_eq!(names, ["CFG", "KEY"]);
}

/// Variables that say when a container is to end, ports with names, and ends of containers are kept.
#[test]
fn ends_and_ports_are_kept() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "a" },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main",
            "env": [{ "name": "A", "value": "1" }, { "name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true" }],
            "ports": [{ "containerPort": 1 }, { "name": "http", "containerPort": 80 }] }] },
        "status": { "podIP": "10.0.0.1", "containerStatuses": [
            { "name": "main", "state": { "terminated": { "exitCode": 3 } } }, { "name": "other", "state": { "running": {} } }] },
    }))
    .unwrap();
    let container = &pod.spec.containers[0];
    let env: Vec<_> = container
        .env
        .iter()
        .map(|env| (env.name.as_str(), env.value.as_deref()))
        .collect();
    assert_eq!(env, [("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", Some("true"))]);
    let ports: Vec<_> = container
        .ports
        .iter()
        .map(|port| (&*port.name, port.container_port))
        .collect();
    assert_eq!(ports, [("http", 80)]);
    let ends = pod.status.container_statuses.iter();
    let ends: Vec<Option<i32>> = ends.map(|status| status.state.exit_code).collect();
    assert_eq!(ends, [Some(3), None]);
    assert_eq!(
        (pod.spec.restart_policy, &*pod.status.ip),
        (crate::pod::RestartPolicy::Never, "10.0.0.1")
    );
}
