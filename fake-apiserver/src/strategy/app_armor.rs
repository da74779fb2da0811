//! Profiles of AppArmor that a new pod names by annotations of old: they are written into the fields that took their place.

use shared_json::{Value, json};

use crate::meta::string_map;

/// What the names of such annotations begin with; the container's name follows.
pub(crate) const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Writes the profiles of annotations into containers that have none of their own.
pub(super) fn apply(pod: &mut Value) {
    let annotations = string_map(pod, "annotations");
    if !annotations.keys().any(|key| key.starts_with(ANNOTATION)) {
        return;
    }
    let annotations = annotations.clone();
    if pod.pointer("/spec/os/name").and_then(Value::as_str) == Some("windows") {
        return;
    }
    let whole = pod.pointer("/spec/securityContext/appArmorProfile").cloned();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod
            .pointer_mut(&format!("/spec/{list}"))
            .and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let annotation = annotations
                .get(&format!("{ANNOTATION}{name}"))
                .and_then(Value::as_str);
            let profile = annotation
                .and_then(profile)
                .filter(|profile| whole.as_ref() != Some(profile));
            if let Some(profile) = profile
                && container
                    .pointer("/securityContext/appArmorProfile")
                    .is_none_or(Value::is_null)
            {
                container["securityContext"]["appArmorProfile"] = profile;
            }
        }
    }
}

/// The field that says what an annotation says.
pub(crate) fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => other
            .strip_prefix("localhost/")
            .filter(|name| !name.is_empty())
            .map(|name| json!({"type": "Localhost", "localhostProfile": name})),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("unconfined", json!({"appArmorProfile": {"type": "Unconfined"}}))]
    #[case("localhost/own", json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": "own"}}))]
    #[case("nonsense", Value::Null)]
    fn annotations_become_fields(#[case] annotation: &str, #[case] expected: Value) {
        let key = format!("{ANNOTATION}c");
        let mut pod =
            json!({"metadata": {"annotations": {key: annotation}}, "spec": {"containers": [{"name": "c"}]}});
        apply(&mut pod);
        assert_eq!(pod["spec"]["containers"][0]["securityContext"], expected);
    }
}
