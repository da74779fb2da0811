//! PersistentPodStates: the records of where pods were.

use shared_json::Value;

use crate::history::{State, text};

/// The annotation of a pod that has a record.
const INJECTED: &str = "/metadata/annotations/kruise.io~1injected-persistent-pod-state";

/// The records, and the pods that were made with one.
pub(super) fn records(state: &State) -> String {
    let mut out = String::new();
    for object in state.of("persistentpodstates") {
        let name = text(object, "/metadata/name");
        let records = object.pointer("/status/podStates").and_then(Value::as_object);
        let records: Vec<String> = records
            .into_iter()
            .flatten()
            .map(|(pod, record)| {
                let labels = record.get("nodeTopologyLabels").and_then(Value::as_object);
                let keys: Vec<&str> = labels
                    .into_iter()
                    .flatten()
                    .map(|(key, _)| key.as_str())
                    .collect();
                format!("{pod} by {}", keys.join(", "))
            })
            .collect();
        out.push_str(&format!("pod states {name}: {}\n", records.join("; ")));
        let injected = state.of("pods").filter(|pod| text(pod, INJECTED) == name);
        let injected: Vec<String> = injected.map(|pod| text(pod, "/metadata/name")).collect();
        out.push_str(&format!(
            "pods with a record of {name}: {}\n",
            injected.join(", ")
        ));
    }
    out
}
