//! The hashes by which the node's daemon tells that a container runs as its spec says.

use go_dump::{bytes_hash, container_hash};
use kruise_api::labels;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pod::{self, Container, EnvVar, Pod};
use crate::template::to_go_json;

/// The daemon's record of a pod's containers (`apps.kruise.io/runtime-containers-meta`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuntimeContainers {
    /// The containers that run.
    pub containers: Vec<RuntimeContainer>,
}

/// One container that runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeContainer {
    /// Its name.
    pub name: String,
    /// Its id, with the name of the runtime.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// How often it has been restarted.
    pub restart_count: i32,
    /// The hashes of what it was started from.
    pub hashes: Hashes,
}

/// Its hashes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hashes {
    /// Of the container as it stands in the spec.
    pub plain_hash: u64,
    /// Zero while it is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub extracted_env_from_metadata_hash: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The daemon's record, if there is one and it can be read.
pub fn runtime_containers(pod: &Pod) -> Option<RuntimeContainers> {
    serde_json::from_str(pod::annotation(pod, labels::RUNTIME_CONTAINERS)?).ok()
}

/// The kubelet's hash of a container: of its name and image (Kubernetes 1.31 and later).
pub fn plain_hash(container: &Container) -> u64 {
    container_hash(&container.name, container.image.as_deref())
}

/// The hash of the environment variables that come from the pod's labels and annotations, with their values there.
pub fn env_hash(container: &Container, pod: &Pod) -> u64 {
    env_hash_of(container, |_, reference| {
        let value = match reference {
            Reference::Label(key) => pod::label(pod, key),
            Reference::Annotation(key) => pod::annotation(pod, key),
        };
        value.unwrap_or_default().to_owned()
    })
}

/// The variables that the webhook gives sidecars which are updated hot. They tell of an update, and ask for none.
const SIDECAR_VERSIONS: [&str; 2] = ["SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"];

/// The reference of a variable, if it counts in the hash.
fn counted(env: &EnvVar) -> Option<Reference<'_>> {
    reference(env).filter(|_| !SIDECAR_VERSIONS.contains(&&*env.name))
}

/// Whether variables of a container come from the pod's labels and annotations.
pub fn has_references(container: &Container) -> bool {
    container.env.iter().any(|env| counted(env).is_some())
}

/// The same with values by the variable's name and its reference.
pub fn env_hash_of(container: &Container, value: impl Fn(&str, Reference<'_>) -> String) -> u64 {
    let values: Vec<Value> = container
        .env
        .iter()
        .filter_map(|env| {
            let value = value(&env.name, counted(env)?);
            Some(if value.is_empty() {
                json!({ "name": env.name })
            } else {
                json!({ "name": env.name, "value": value })
            })
        })
        .collect();
    // A nil slice in Go.
    let text = if values.is_empty() {
        "null".to_owned()
    } else {
        to_go_json(&Value::Array(values))
    };
    bytes_hash(text.as_bytes())
}

/// The label or annotation that an environment variable refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The label of this key.
    Label(&'a str),
    /// The annotation of this key.
    Annotation(&'a str),
}

/// The label or annotation that an environment variable is taken from.
pub fn reference(env: &EnvVar) -> Option<Reference<'_>> {
    let path = env.value_from.as_ref()?.field_ref.as_ref()?.field_path.as_str();
    let key = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
    key("metadata.labels['")
        .map(Reference::Label)
        .or_else(|| key("metadata.annotations['").map(Reference::Annotation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::collections::BTreeMap;

    #[rstest]
    #[case("nginx", "nginx:alpine", 1_281_589_684)]
    #[case("nginx", "nginx:latest", 361_796_687)]
    #[case("main", "openkruise/guestbook:v1", 1_896_442_613)]
    #[case("main", "openkruise/guestbook:v2", 2_369_000_647)]
    fn plain_hashes_are_the_recorded_ones(#[case] name: &str, #[case] image: &str, #[case] want: u64) {
        let container = Container {
            name: name.to_owned(),
            image: Some(image.to_owned()),
            ..Container::default()
        };
        assert_eq!(plain_hash(&container), want);
    }

    #[rstest]
    #[case(None, 86_995_377)]
    #[case(Some("one"), 3_624_006_759)]
    #[case(Some("two"), 2_021_199_766)]
    #[case(Some("three"), 1_181_583_253)]
    fn env_hashes_are_the_recorded_ones(#[case] value: Option<&str>, #[case] want: u64) {
        let mut pod = Pod::default();
        let mut container = Container::default();
        if let Some(value) = value {
            pod.metadata.annotations = Some(BTreeMap::from([("cfg".to_owned(), value.to_owned())]));
            container.env = serde_json::from_value(json!([
                { "name": "plain", "value": "x" },
                { "name": "CFG", "valueFrom": { "fieldRef": { "fieldPath": "metadata.annotations['cfg']" } } },
            ]))
            .unwrap();
        }
        assert_eq!(env_hash(&container, &pod), want);
    }
}
