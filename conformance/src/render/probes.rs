//! PodProbeMarkers, the probes of nodes, and the requests that end sidecars.

use shared_json::{Array, Value};

use crate::history::{State, text};

/// The annotation of a pod whose liveness probes were moved out of its containers.
const LIVENESS: &str = "/metadata/annotations/apps.kruise.io~1container-probe-context";

/// The markers with their matched pods, and the probes of each node that has some.
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
            let probes = list(pod, "/probes").iter().map(|probe| text(probe, "/name"));
            let probes: Vec<String> = probes.collect();
            out.push_str(&format!("  {}: {}\n", text(pod, "/name"), probes.join(", ")));
        }
    }
    out
}

/// The requests to recreate containers, by the pods that they are about.
pub(super) fn requests(state: &State) -> String {
    let mut out = String::new();
    for request in state.of("containerrecreaterequests") {
        let containers = list(request, "/spec/containers").iter();
        let containers: Vec<String> = containers.map(|container| text(container, "/name")).collect();
        let phase = text(request, "/status/phase");
        let pod = text(request, "/spec/podName");
        out.push_str(format!("request for {pod}: {} {phase}", containers.join(", ")).trim_end());
        out.push('\n');
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

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}
