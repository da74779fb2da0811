//! The objects that are installed for the daemon, compared with the installation of OpenKruise's own.

use std::collections::BTreeSet;

use super::*;

fn upstream() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../fixtures/installation/1.5.0.json")).unwrap()
}

fn ours() -> Vec<Value> {
    manifests("kruise-system", "kruise-daemon-config", "image", "AllAlpha=true").unwrap()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{kind} {name}"))
}

/// The rights of a role: group, resource and verb.
fn rights(role: &Value) -> BTreeSet<(String, String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    rights
}

#[test]
fn the_daemon_may_do_no_more_than_openkruises() {
    let (ours, theirs) = (ours(), upstream());
    let theirs = rights(find(&theirs, "ClusterRole", ROLE));
    let ours = [
        rights(find(&ours, "ClusterRole", ROLE)),
        rights(find(&ours, "Role", ROLE)),
    ];
    for right in ours.iter().flatten() {
        assert!(theirs.contains(right), "{right:?}");
    }
}

#[test]
fn secrets_are_read_in_one_namespace() {
    let ours = ours();
    let of_cluster = rights(find(&ours, "ClusterRole", ROLE));
    assert!(of_cluster.iter().all(|(_, resource, _)| resource != "secrets"));
    assert_eq!(
        find(&ours, "Role", ROLE)["metadata"]["namespace"],
        "kruise-daemon-config"
    );
}

#[test]
fn the_daemon_set_is_openkruises() {
    let (ours, theirs) = (ours(), upstream());
    let (ours, theirs) = (find(&ours, "DaemonSet", NAME), find(&theirs, "DaemonSet", NAME));
    for pointer in [
        "/metadata",
        "/spec/selector",
        "/spec/template/metadata",
        "/spec/template/spec/hostNetwork",
        "/spec/template/spec/serviceAccountName",
        "/spec/template/spec/terminationGracePeriodSeconds",
        "/spec/template/spec/tolerations",
        "/spec/template/spec/volumes/0/hostPath",
        "/spec/template/spec/containers/0/name",
        "/spec/template/spec/containers/0/command",
        "/spec/template/spec/containers/0/args/2",
        "/spec/template/spec/containers/0/env/1/name",
        "/spec/template/spec/containers/0/livenessProbe/httpGet/path",
        "/spec/template/spec/containers/0/livenessProbe/initialDelaySeconds",
        "/spec/template/spec/containers/0/resources/limits",
        "/spec/template/spec/containers/0/volumeMounts/0/mountPath",
    ] {
        // OpenKruise's has a variable for its tests before the name of the node.
        let own = pointer.replace("env/1", "env/0");
        assert_eq!(ours.pointer(&own), theirs.pointer(pointer), "{pointer}");
    }
}

#[test]
fn an_unknown_gate_is_refused() {
    assert!(manifests("n", "s", "image", "Nonsense=true").is_err());
}
