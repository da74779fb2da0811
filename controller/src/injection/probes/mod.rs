//! Probes of pods that the daemon of OpenKruise does not run: the platform of a virtual node gets them by an annotation.
//!
//! `liveness` takes the liveness probes of containers out for a program that is to run them instead of the kubelet.

mod go_probe;
mod liveness;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use self::go_probe::GoProbe;
use crate::api::v1alpha1::{PodContainerProbe, PodProbeMarker};
use crate::kit::admission::{Refusal, Request};
use crate::kit::{ObjectKey, selector};
use crate::pods::build::strings;

pub(super) use liveness::{GATE as LIVENESS_GATE, move_out};

/// The gate of PodProbeMarkers.
pub(crate) const GATE: &str = "PodProbeMarkerGate";
/// The gate of PodProbeMarkers for pods on virtual nodes.
pub(crate) const SERVERLESS_GATE: &str = "EnablePodProbeMarkerOnServerless";
/// Annotation of a pod: the names of its markers, with commas between.
pub(crate) const MARKERS: &str = "kruise.io/podprobemarker-list";
/// Annotation of a pod: its probes, as JSON.
const PROBES: &str = "kruise.io/podprobe";

/// Tells a new pod its probes.
pub(super) async fn announce(pod: &mut Value, request: &Request<'_>) -> Result<(), Refusal> {
    let surroundings = request.surroundings;
    if !surroundings.gates.is_on(SERVERLESS_GATE) {
        return Ok(());
    }
    let markers = surroundings.cache::<PodProbeMarker>().await?;
    let named = text(pod, "/metadata/annotations", MARKERS);
    let markers: Vec<Arc<PodProbeMarker>> = match named.filter(|names| !names.is_empty()) {
        Some(names) => names
            .split(',')
            .filter_map(|name| markers.get(&ObjectKey::new(request.namespace, name)))
            .collect(),
        None => {
            let labels = strings(pod, "/metadata/labels");
            let of_namespace = markers.in_namespace(request.namespace).into_iter();
            of_namespace
                .filter(|marker| selector::selects(&marker.spec.selector, &labels).unwrap_or(false))
                .collect()
        }
    };
    annotate(pod, &markers);
    Ok(())
}

/// Writes the probes of markers into the annotations of a pod.
fn annotate(pod: &mut Value, markers: &[Arc<PodProbeMarker>]) {
    let probes = probes(pod, markers);
    if probes.is_empty() {
        return;
    }
    let mut names: Vec<&str> = markers
        .iter()
        .filter_map(|marker| marker.metadata.name.as_deref())
        .collect();
    names.sort_unstable();
    let (names, probes) = (
        names.join(","),
        serde_json::to_string(&probes).unwrap_or_default(),
    );
    let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(PROBES.to_owned(), json!(probes));
        annotations.insert(MARKERS.to_owned(), json!(names));
    }
}

/// The probes of a pod: of containers that it has, each with a condition of its own, and one for each name in a container.
fn probes<'m>(pod: &Value, markers: &'m [Arc<PodProbeMarker>]) -> Vec<Announced<'m>> {
    let containers = containers(pod);
    let (mut conditions, mut known) = (BTreeSet::new(), BTreeSet::new());
    let mut out = Vec::new();
    for probe in markers.iter().flat_map(|marker| &marker.spec.probes) {
        let kind = &*probe.pod_condition_type;
        let key = (&*probe.container_name, &*probe.name);
        let is_free = !conditions.contains(kind) && !known.contains(&key);
        if kind.is_empty() || !containers.contains(key.0) || !is_free {
            continue;
        }
        conditions.insert(kind);
        known.insert(key);
        out.push(Announced::from(probe));
    }
    out
}

/// A probe without its marks, in the order in which Go writes its fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Announced<'m> {
    name: &'m str,
    container_name: &'m str,
    probe: GoProbe,
    pod_condition_type: &'m str,
}

impl<'m> From<&'m PodContainerProbe> for Announced<'m> {
    fn from(probe: &'m PodContainerProbe) -> Self {
        Self {
            name: &probe.name,
            container_name: &probe.container_name,
            probe: GoProbe::of(&serde_json::to_value(&probe.probe).unwrap_or_default()),
            pod_condition_type: &probe.pod_condition_type,
        }
    }
}

/// The names of the containers of a pod that stay: those of the app, and init containers that are always started anew.
fn containers(pod: &Value) -> BTreeSet<String> {
    let list = |field: &str| {
        let list = pod.pointer(field).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let stays = |init: &&Value| init.get("restartPolicy").and_then(Value::as_str) == Some("Always");
    let all = list("/spec/containers").chain(list("/spec/initContainers").filter(stays));
    all.filter_map(|container| Some(container.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// The text at a key of a map of texts.
fn text<'v>(object: &'v Value, map: &str, key: &str) -> Option<&'v str> {
    object.pointer(map)?.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::gates::FeatureGates;
    use crate::kit::WebhookCaches;
    use crate::kit::admission::Surroundings;
    use crate::test_admission::admit_whole;

    /// A marker whose probes are words: `name@container:condition`.
    fn marker(name: &str, words: &str) -> PodProbeMarker {
        let one = |word: &str| {
            let (name, rest) = word.split_once('@').unwrap();
            let (container, kind) = rest.split_once(':').unwrap();
            json!({ "name": name, "containerName": container, "podConditionType": kind,
                "probe": { "exec": { "command": ["true"] } },
                "markerPolicy": [{ "state": "Succeeded", "labels": { "up": "1" } }] })
        };
        let probes: Vec<Value> = words.split_whitespace().map(one).collect();
        let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "probes": probes });
        serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "n" }, "spec": spec }))
            .unwrap()
    }

    /// The probes of two markers, `b` and `a`, those that the pod names, and the annotations then: probes and markers.
    #[rstest]
    #[case::one("p@main:c.io/x", "", None, Some(("p@main:c.io/x", "a,b")))]
    #[case::of_both("p@main:c.io/x", "q@main:c.io/y", None, Some(("q@main:c.io/y p@main:c.io/x", "a,b")))]
    #[case::a_condition_once("p@main:c.io/x", "q@main:c.io/x", None, Some(("q@main:c.io/x", "a,b")))]
    #[case::a_name_once_in_a_container("p@main:c.io/x", "p@main:c.io/y", None, Some(("p@main:c.io/y", "a,b")))]
    #[case::the_name_in_another_container("p@main:c.io/x", "p@side:c.io/y", None,
        Some(("p@side:c.io/y p@main:c.io/x", "a,b")))]
    #[case::of_a_native_sidecar("p@native:c.io/x", "", None, Some(("p@native:c.io/x", "a,b")))]
    #[case::of_an_init_container("p@init:c.io/x", "", None, None)]
    #[case::of_no_container("p@none:c.io/x", "", None, None)]
    #[case::without_a_condition("p@main:", "", None, None)]
    #[case::named("p@main:c.io/x", "q@main:c.io/y", Some("b"), Some(("p@main:c.io/x", "b")))]
    #[case::named_but_not_there("p@main:c.io/x", "", Some("z"), None)]
    #[tokio::test]
    async fn annotations(
        #[case] of_b: &str,
        #[case] of_a: &str,
        #[case] named: Option<&str>,
        #[case] expect: Option<(&str, &str)>,
        #[values(true, false)] on: bool,
    ) {
        let gates = if on {
            "EnablePodProbeMarkerOnServerless=true"
        } else {
            ""
        };
        let surroundings = Surroundings {
            caches: WebhookCaches::default().with(vec![marker("b", of_b), marker("a", of_a)]),
            ..Surroundings::alone(FeatureGates::parse(gates).unwrap())
        };
        let annotations = named.map_or(json!({}), |names| json!({ MARKERS: names }));
        let init = json!([{ "name": "init" }, { "name": "native", "restartPolicy": "Always" }]);
        let pod = json!({
            "metadata": { "name": "p", "namespace": "n", "labels": { "app": "x" }, "annotations": annotations },
            "spec": { "initContainers": init, "containers": [{ "name": "main" }, { "name": "side" }] },
        });
        let pod = admit_whole(&[&crate::injection::WEBHOOKS[0]], &pod, None, &surroundings)
            .await
            .unwrap();
        let probes = text(&pod, "/metadata/annotations", PROBES).map(|probes| {
            let probes: Vec<Value> = serde_json::from_str(probes).unwrap();
            let one = |probe: &Value| {
                assert!(probe.get("markerPolicy").is_none());
                let field = |field: &str| probe[field].as_str().unwrap().to_owned();
                format!(
                    "{}@{}:{}",
                    field("name"),
                    field("containerName"),
                    field("podConditionType")
                )
            };
            probes.iter().map(one).collect::<Vec<_>>().join(" ")
        });
        let names = text(&pod, "/metadata/annotations", MARKERS);
        let found = probes.as_deref().zip(names);
        assert_eq!(found, expect.filter(|_| on));
    }
}
