//! PodProbeMarkers, the probes of nodes, and the requests that end sidecars.

use shared_json::Value;

use super::normalise;
use crate::history::{State, list, text};

/// The annotation of a pod whose liveness probes were moved out of its containers.
const LIVENESS: &str = "/metadata/annotations/apps.kruise.io~1container-probe-context";

/// The markers with their matched pods, and the probes of each node that has some, with their results.
pub(super) fn markers(state: &State) -> String {
    let mut out = String::new();
    for marker in state.of("podprobemarkers") {
        let name = text(marker, "/metadata/name");
        let matched = marker.pointer("/status/matchedPods").and_then(Value::as_i64);
        out.push_str(&format!("marker {name}: {} pods\n", matched.unwrap_or_default()));
    }
    for node in state.of("nodepodprobes") {
        let pods = list(node, "/spec/podProbes");
        if pods.is_empty() {
            continue;
        }
        out.push_str(&format!("probes on {}:\n", text(node, "/metadata/name")));
        for pod in pods {
            let probes = list(pod, "/probes").iter().map(|probe| {
                let name = text(probe, "/name");
                match result(node, &text(pod, "/uid"), &name) {
                    Some(state) => format!("{name} {state}"),
                    None => name,
                }
            });
            let probes: Vec<String> = probes.collect();
            out.push_str(&format!("  {}: {}\n", text(pod, "/name"), probes.join(", ")));
        }
    }
    out
}

/// The result of a probe of a pod.
fn result(node: &Value, pod: &str, probe: &str) -> Option<String> {
    let pods = list(node, "/status/podProbeStatuses").iter();
    let mut states = pods
        .filter(|known| text(known, "/uid") == pod)
        .flat_map(|known| list(known, "/probeStates"));
    let state = states.find(|state| text(state, "/name") == probe)?;
    Some(text(state, "/state"))
}

/// The requests to recreate containers: their containers with their states, the pods that they are about, and how they ended.
pub(super) fn requests(state: &State) -> String {
    let mut out = String::new();
    for request in state.of("containerrecreaterequests") {
        let states = list(request, "/status/containerRecreateStates");
        let containers = list(request, "/spec/containers").iter().map(|container| {
            let name = text(container, "/name");
            let state = states.iter().find(|state| text(state, "/name") == name);
            let Some(state) = state else { return name };
            let killed = if state.get("isKilled") == Some(&Value::Bool(true)) {
                ", killed"
            } else {
                ""
            };
            let words = format!(
                "{name} {}{killed} {}",
                text(state, "/phase"),
                text(state, "/message")
            );
            words.trim_end().to_owned()
        });
        let containers: Vec<String> = containers.collect();
        let name = normalise::name(text(request, "/metadata/name"));
        let pod = text(request, "/spec/podName");
        let (phase, message) = (text(request, "/status/phase"), text(request, "/status/message"));
        let line = format!("request {name} for {pod}: {phase} {message}");
        out.push_str(&format!("{} ({})\n", line.trim_end(), containers.join("; ")));
    }
    out
}

/// The liveness probes that were moved out of the containers of pods, as the annotation has them.
pub(super) fn liveness(state: &State) -> String {
    let mut out = String::new();
    for pod in state.of("pods") {
        let probes = text(pod, LIVENESS);
        if !probes.is_empty() {
            out.push_str(&format!(
                "liveness of {}: {probes}\n",
                text(pod, "/metadata/name")
            ));
        }
    }
    out
}
