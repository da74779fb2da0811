//! Takes the liveness probes of new pods out of their containers, where the pod asks for that, and keeps them in an annotation.
//!
//! Nothing in OpenKruise 1.9.0 runs these probes.

use serde::Serialize;
use serde_json::{Value, json};

use super::go_probe::GoProbe;
use crate::injection::pod::controller_group;

/// The gate of the rule.
pub(crate) const GATE: &str = "EnhancedLivenessProbe";
/// Annotation of a pod: `true` asks for it.
const ASKS: &str = "/metadata/annotations/apps.kruise.io~1using-enhanced-liveness";
/// Annotation of a pod: the probes, as JSON.
const PROBES: &str = "apps.kruise.io/container-probe-context";

/// The probe of a container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    name: String,
    liveness_probe: GoProbe,
}

/// Moves the liveness probes of a pod that one of OpenKruise's workloads controls, if the pod asks for it.
pub(in crate::injection) fn move_out(pod: &mut Value) {
    let asks = pod.pointer(ASKS).and_then(Value::as_str) == Some("true");
    if !asks || controller_group(pod) != Some("apps.kruise.io") {
        return;
    }
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    let mut probes = Vec::new();
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        let probe = container.remove("livenessProbe");
        if let Some(probe) = probe.filter(|probe| !probe.is_null()) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            probes.push(Context {
                name: name.to_owned(),
                liveness_probe: GoProbe::of(&probe),
            });
        }
    }
    let annotations = pod
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut);
    if let (Some(annotations), false) = (annotations, probes.is_empty()) {
        let text = serde_json::to_string(&probes).unwrap_or_default();
        annotations.insert(PROBES.to_owned(), json!(text));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KEPT: &str = r#"[{"name":"main","livenessProbe":{"exec":{"command":["true"]},"timeoutSeconds":1,"periodSeconds":2,"successThreshold":1,"failureThreshold":3}}]"#;

    /// The text is that of the recording `gate-enhanced-liveness`.
    #[rstest]
    #[case::asks("true", "apps.kruise.io/v1alpha1", true, Some(KEPT))]
    #[case::no_probe("true", "apps.kruise.io/v1alpha1", false, None)]
    #[case::another_word("yes", "apps.kruise.io/v1alpha1", true, None)]
    #[case::of_another_group("true", "apps/v1", true, None)]
    fn pods(
        #[case] asks: &str,
        #[case] version: &str,
        #[case] has_probe: bool,
        #[case] expect: Option<&str>,
    ) {
        let probe = json!({ "exec": { "command": ["true"] }, "failureThreshold": 3, "periodSeconds": 2, "successThreshold": 1,
            "timeoutSeconds": 1 });
        let mut pod = json!({
            "metadata": { "annotations": { "apps.kruise.io/using-enhanced-liveness": asks },
                "ownerReferences": [{ "apiVersion": version, "controller": true }] },
            "spec": { "containers": [{ "name": "main" }, { "name": "side" }] },
        });
        if has_probe {
            pod["spec"]["containers"][0]["livenessProbe"] = probe;
        }
        let before = pod.clone();
        move_out(&mut pod);
        let kept = pod["metadata"]["annotations"].get(PROBES).and_then(Value::as_str);
        assert_eq!(kept, expect);
        let moved = pod["spec"]["containers"][0].get("livenessProbe").is_none();
        assert!(if expect.is_some() { moved } else { pod == before });
    }
}
