//! Profiles of AppArmor that a new pod names by annotations of old: they are written into the fields that took their place.

use shared_json::{Map, Value, json};

use crate::fields::{Fields, NOTHING};

/// The prefix of the names of such annotations; the container's name follows.
pub const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

fn annotations_of(object: &Value) -> &Map {
    object.part("metadata").unwrap_or(&NOTHING).map("annotations")
}

/// Writes the profiles of annotations into containers that have none of their own.
pub fn apply(pod: &mut Value) {
    let annotations = annotations_of(pod);
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

/// The warnings about such annotations of a pod, or of a template that stands at `prefix`: those that no field repeats.
pub fn warnings(holder: &Value, prefix: &str) -> Vec<String> {
    let annotations = annotations_of(holder);
    let is_pod = prefix.is_empty();
    let windows = holder.pointer("/spec/os/name").and_then(Value::as_str) == Some("windows");
    if !annotations.keys().any(|key| key.starts_with(ANNOTATION)) || is_pod && windows {
        return Vec::new();
    }
    let set = |holder: &Value| {
        let profile = holder.pointer("/securityContext/appArmorProfile");
        profile.filter(|profile| !profile.is_null()).cloned()
    };
    let whole = holder.get("spec").and_then(set);
    let mut out = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = holder.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let key = format!("{ANNOTATION}{name}");
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else {
                continue;
            };
            let said = profile(annotation);
            if set(container).is_none() && (said.is_none() || said != whole) {
                out.push(format!(
                    "{prefix}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
                ));
            }
        }
    }
    out
}

/// The field that corresponds to an annotation.
pub fn profile(annotation: &str) -> Option<Value> {
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
