//! UnitedDeployments and workloads for tests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use crate::api::labels;
use crate::api::v1alpha1::UnitedDeployment;
use crate::workloads::uniteddeployment::children::{Child, ChildSpec};
use crate::workloads::uniteddeployment::kinds::ChildKind;

/// A UnitedDeployment `u` of CloneSets, without subsets. The strategy is empty, `Adaptive`, or `Reserve` where pods stay that get no
/// node: they may wait for 5 seconds, and a subset is left out for 15.
pub(super) fn set(strategy: &str) -> UnitedDeployment {
    let adaptive = json!({ "rescheduleCriticalSeconds": 5, "unschedulableDuration": 15,
        "reserveUnschedulablePods": strategy == "Reserve" });
    let strategy = match strategy {
        "" => json!({}),
        _ => json!({ "type": "Adaptive", "adaptive": adaptive }),
    };
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment",
        "metadata": { "name": "u", "namespace": "default", "uid": "uid-u", "generation": 2 },
        "spec": {
            "selector": { "matchLabels": { "app": "x" } },
            "template": { "cloneSetTemplate": { "metadata": { "labels": { "app": "x" } }, "spec": {
                "selector": { "matchLabels": { "app": "x" } },
                "template": { "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [] } } } } },
            "topology": { "scheduleStrategy": strategy },
            "updateStrategy": { "type": "Manual", "manualUpdate": {} },
        },
    }))
    .unwrap()
}

/// The CloneSet of a subset, of that revision, without pods.
pub(super) fn child(subset: &str, revision: &str) -> Child {
    let labels = [
        ("app", "x"),
        (labels::SUBSET_NAME, subset),
        (labels::SUBSET_REVISION, revision),
    ];
    Child {
        kind: ChildKind::CloneSet,
        name: format!("u-{subset}-1"),
        uid: format!("uid-{subset}"),
        version: "1".to_owned(),
        created: Some(Timestamp::UNIX_EPOCH),
        is_ending: false,
        is_owned: true,
        labels: BTreeMap::from(labels.map(|(key, value)| (key.to_owned(), value.to_owned()))),
        patch: String::new(),
        spec: ChildSpec::default(),
        replicas: 0,
        ready: 0,
        pods: Vec::new(),
    }
}
