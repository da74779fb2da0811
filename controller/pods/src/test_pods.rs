//! Pods for tests, described in a few words.

use kruise_api::labels;
use serde_json::{Value, json};

use crate::pod::Pod;

/// A pod of the set `sample`, running on node `n1` and ready since second 0, unless said otherwise.
#[derive(Clone)]
pub struct TestPod(Value);

impl TestPod {
    pub fn new(name: &str) -> Self {
        Self(json!({
            "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
                "creationTimestamp": "1970-01-01T00:00:00Z", "labels": { "app": "x" }, "annotations": {} },
            "spec": { "nodeName": "n1", "containers": [{ "name": "main", "image": "v1" }],
                "readinessGates": [{ "conditionType": "InPlaceUpdateReady" }] },
            "status": { "phase": "Running", "conditions": [
                    { "type": "PodScheduled", "status": "True" },
                    { "type": "ContainersReady", "status": "True" },
                    { "type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z" },
                    { "type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z" }],
                "containerStatuses": [{ "name": "main", "image": "v1", "imageID": "id-v1", "ready": true, "restartCount": 0 }] },
        }))
    }

    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap()
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["labels"][key] = json!(value);
        self
    }

    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][key] = json!(value);
        self
    }

    pub fn state(self, state: &str) -> Self {
        self.label(labels::LIFECYCLE_STATE, state)
    }

    pub fn revision(self, name: &str) -> Self {
        let hash = name.rsplit('-').next().unwrap_or_default().to_owned();
        self.label(labels::REVISION_HASH, name)
            .label(labels::TEMPLATE_HASH, &hash)
    }

    pub fn set(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        self.0.pointer_mut(parent).unwrap()[key] = value;
        self
    }

    pub fn node(self, node: &str) -> Self {
        self.set("/spec/nodeName", json!(node))
    }

    pub fn phase(self, phase: &str) -> Self {
        let pod = self.set("/status/phase", json!(phase));
        if phase == "Running" { pod } else { pod.not_ready() }
    }

    pub fn not_ready(self) -> Self {
        self.condition("Ready", "False")
    }

    pub fn condition(mut self, kind: &str, status: &str) -> Self {
        let list = self.0["status"]["conditions"].as_array_mut().unwrap();
        list.retain(|condition| condition["type"] != kind);
        list.push(json!({ "type": kind, "status": status, "lastTransitionTime": "1970-01-01T00:00:00Z" }));
        self
    }

    pub fn without_label(mut self, key: &str) -> Self {
        self.0["metadata"]["labels"].as_object_mut().unwrap().remove(key);
        self
    }

    pub fn ready_at(mut self, second: i64) -> Self {
        let time = jiff::Timestamp::from_second(second).unwrap().to_string();
        for condition in self.0["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["lastTransitionTime"] = json!(time);
            }
        }
        self
    }

    pub fn created_at(self, second: i64) -> Self {
        self.set(
            "/metadata/creationTimestamp",
            json!(jiff::Timestamp::from_second(second).unwrap().to_string()),
        )
    }

    pub fn restarts(mut self, count: i32) -> Self {
        self.0["status"]["containerStatuses"][0]["restartCount"] = json!(count);
        self
    }

    pub fn build(self) -> Pod {
        serde_json::from_value(self.0).unwrap()
    }
}
