//! Containers that are upgraded hot: each is a pair in the pod, of which one works and the other has an empty image.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::labels;
use crate::api::v1beta1::SidecarContainer;

/// Variable of a container of a pair: its own version.
const VERSION_ENV: &str = "SIDECARSET_VERSION";
/// Variable of a container of a pair: the other's version.
const ALTERNATE_VERSION_ENV: &str = "SIDECARSET_VERSION_ALT";

/// The names of the pair.
pub(crate) fn names(container: &str) -> [String; 2] {
    [format!("{container}-1"), format!("{container}-2")]
}

/// The annotation with the version of a container.
pub(crate) fn version_key(container: &str) -> String {
    format!("{}{container}", labels::SIDECAR_VERSION_PREFIX)
}

/// The annotation with the version of a container's other.
pub(crate) fn alternate_key(container: &str) -> String {
    format!("{}{container}", labels::SIDECAR_ALTERNATE_VERSION_PREFIX)
}

/// The names in the pod of the containers of a list.
pub(crate) fn pod_names(containers: &[SidecarContainer]) -> Vec<String> {
    let names = |container: &SidecarContainer| match container.is_hot() {
        true => names(container.name()).to_vec(),
        false => vec![container.name().to_owned()],
    };
    containers.iter().flat_map(names).collect()
}

/// Which container of each pair works, by the name in the set. Without an annotation that can be read there is none.
pub(crate) fn working(annotation: Option<&str>) -> BTreeMap<String, String> {
    annotation
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The containers of a pair, made of the container as it is injected.
pub(super) fn pair(container: &SidecarContainer, injected: &Value) -> [Value; 2] {
    let twin = |name: &str, image: &str| {
        let mut twin = injected.clone();
        twin["name"] = json!(name);
        twin["image"] = json!(image);
        let variables = [
            (VERSION_ENV, version_key(name)),
            (ALTERNATE_VERSION_ENV, alternate_key(name)),
        ];
        if let Some(env) = twin["env"].as_array_mut() {
            env.extend(variables.map(|(variable, key)| {
                let path = format!("metadata.annotations['{key}']");
                json!({ "name": variable, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } })
            }));
        }
        twin
    };
    let [first, second] = names(container.name());
    [
        twin(&first, container.image()),
        twin(&second, container.empty_image()),
    ]
}

/// The annotations of a new pod about its pairs.
pub(super) fn annotations(containers: &[&SidecarContainer], annotations: &mut BTreeMap<String, String>) {
    let hot: Vec<&str> = containers
        .iter()
        .filter(|container| container.is_hot())
        .map(|container| container.name())
        .collect();
    if hot.is_empty() {
        return;
    }
    let mut works = working(annotations.get(labels::SIDECARS_WORKING).map(String::as_str));
    for name in hot {
        let [first, second] = names(name);
        for (container, version, alternate) in [(&first, "1", "0"), (&second, "0", "1")] {
            annotations.insert(version_key(container), version.to_owned());
            annotations.insert(alternate_key(container), alternate.to_owned());
        }
        works.insert(name.to_owned(), first);
    }
    annotations.insert(labels::SIDECARS_WORKING.to_owned(), json!(works).to_string());
}
