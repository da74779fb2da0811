//! The rules: the probes of each node, and the marks of pods on virtual nodes, as a pure function.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Probe;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use super::observe::Observed;
use crate::api::v1alpha1::{
    ContainerProbe, NodePodProbeSpec, PodContainerProbe, PodProbe, PodProbeMarker, PodProbeMarkerStatus,
};
use crate::pods::pod::{self, Pod};
use crate::pods::{CachedPod, PodRef};

/// Keeps a marker until its probes are gone.
pub(super) const FINALIZER: &str = "kruise.io/node-pod-probe-cleanup";

/// The work of one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// Whether the finalizer is added (true) or taken away (false).
    pub(super) finalizer: Option<bool>,
    /// Labels and annotations that pods on virtual nodes get.
    pub(super) marks: Vec<Mark>,
    /// The nodes whose probes change, and their probes then.
    pub(super) nodes: Vec<(String, NodePodProbeSpec)>,
    /// The status, if it changes.
    pub(super) status: Option<PodProbeMarkerStatus>,
}

/// Labels and annotations that a pod gets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    /// The pod.
    pub(super) pod: PodRef,
    /// Its labels.
    pub(super) labels: BTreeMap<String, String>,
    /// Its annotations.
    pub(super) annotations: BTreeMap<String, String>,
}

/// The work of one pass over a marker.
pub(super) fn plan(observed: &Observed) -> Plan {
    let marker = &observed.marker;
    let holds = marker.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
    if marker.metadata.deletion_timestamp.is_some() {
        return match holds {
            true => Plan {
                finalizer: Some(false),
                nodes: nodes(observed, &[]),
                ..Plan::default()
            },
            false => Plan::default(),
        };
    }
    let count = observed.pods.len() + observed.serverless.len();
    let status = PodProbeMarkerStatus {
        observed_generation: marker.metadata.generation.unwrap_or_default(),
        matched_pods: i64::try_from(count).unwrap_or(i64::MAX),
    };
    let marks = observed.serverless.iter().filter(|_| observed.marks_serverless);
    Plan {
        finalizer: (!holds).then_some(true),
        marks: marks.filter_map(|pod| mark(marker, pod)).collect(),
        nodes: nodes(observed, &observed.pods),
        status: (marker.status.as_ref() != Some(&status)).then_some(status),
    }
}

/// The nodes whose probes change when the marker has these pods probed, and no others.
fn nodes(observed: &Observed, pods: &[Arc<CachedPod>]) -> Vec<(String, NodePodProbeSpec)> {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(pod::node(pod)).or_default().push(pod);
    }
    let mut out = Vec::new();
    for probes in &observed.probes {
        let node = probes.name_any();
        let on_node = by_node.get(&*node).map_or(&[][..], Vec::as_slice);
        let spec = merged(&probes.spec, &observed.marker, on_node);
        if spec != probes.spec {
            out.push((node, spec));
        }
    }
    out
}

/// The probes of a node on which these pods are probed for the marker. Probes that the marker does not have any more go.
fn merged(spec: &NodePodProbeSpec, marker: &PodProbeMarker, pods: &[&Pod]) -> NodePodProbeSpec {
    let (name, namespace) = (marker.name_any(), marker.namespace().unwrap_or_default());
    let mut left: Vec<&Pod> = pods.to_vec();
    let mut pod_probes = Vec::with_capacity(spec.pod_probes.len() + pods.len());
    for known in &spec.pod_probes {
        let is_it = |pod: &&Pod| {
            known.namespace == namespace && known.name == pod::name(pod) && known.uid == pod::uid(pod)
        };
        let pod = left.iter().position(is_it).map(|at| left.remove(at));
        let wanted = pod.map_or(Vec::new(), |pod| wanted(marker, pod));
        let mut next = known.clone();
        if known.namespace == namespace {
            next.probes = replaced(&known.probes, &name, wanted);
        }
        if let Some(ip) = pod.map(|pod| &*pod.status.ip).filter(|ip| !ip.is_empty()) {
            ip.clone_into(&mut next.ip);
        }
        if !next.probes.is_empty() || known.probes.is_empty() {
            pod_probes.push(next);
        }
    }
    for pod in left {
        let probes = wanted(marker, pod);
        if !probes.is_empty() {
            pod_probes.push(PodProbe {
                name: pod::name(pod).to_owned(),
                namespace: namespace.clone(),
                uid: pod::uid(pod).to_owned(),
                ip: pod.status.ip.to_string(),
                probes,
            });
        }
    }
    NodePodProbeSpec { pod_probes }
}

/// The probes of a pod with those of a marker replaced. Those that stay keep their place.
fn replaced(known: &[ContainerProbe], marker: &str, mut wanted: Vec<ContainerProbe>) -> Vec<ContainerProbe> {
    let mut out = Vec::with_capacity(known.len() + wanted.len());
    for probe in known {
        let is_own = probe
            .name
            .split_once('#')
            .is_some_and(|(owner, _)| owner == marker);
        if !is_own {
            out.push(probe.clone());
        } else if let Some(at) = wanted.iter().position(|wanted| wanted.name == probe.name) {
            out.push(wanted.remove(at));
        }
    }
    out.extend(wanted);
    out
}

/// The probes that a marker asks for in a pod. One whose port the container does not have is left out.
fn wanted(marker: &PodProbeMarker, pod: &Pod) -> Vec<ContainerProbe> {
    let name = marker.name_any();
    let one = |probe: &PodContainerProbe| {
        Some(ContainerProbe {
            name: format!("{name}#{}", probe.name),
            container_name: probe.container_name.clone(),
            probe: with_numbers(&probe.probe, pod, &probe.container_name)?,
        })
    };
    marker.spec.probes.iter().filter_map(one).collect()
}

/// The probe with numbers in place of the names of ports, if the container has ports of these names.
fn with_numbers(probe: &Probe, pod: &Pod, container: &str) -> Option<Probe> {
    let mut probe = probe.clone();
    let http = probe.http_get.as_mut().map(|action| &mut action.port);
    let tcp = probe.tcp_socket.as_mut().map(|action| &mut action.port);
    for port in http.into_iter().chain(tcp) {
        if let IntOrString::String(name) = port {
            *port = IntOrString::Int(number(pod, container, name)?);
        }
    }
    Some(probe)
}

/// The number of a port: that of the port of this name, or the name itself if it is a number.
fn number(pod: &Pod, container: &str, name: &str) -> Option<i32> {
    let container = pod::containers(pod)
        .iter()
        .find(|known| known.name == container)?;
    let named = container.ports.iter().find(|port| &*port.name == name);
    match named {
        Some(port) => Some(port.container_port),
        None => name.parse().ok(),
    }
}

/// The marks that a pod on a virtual node gets by its conditions, if it has not got them. Nothing is taken away.
fn mark(marker: &PodProbeMarker, pod: &CachedPod) -> Option<Mark> {
    let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
    for probe in &marker.spec.probes {
        let Some(condition) = pod::condition(pod, &probe.pod_condition_type) else {
            continue;
        };
        let state = match &*condition.status {
            "True" => "Succeeded",
            "False" => "Failed",
            _ => continue,
        };
        let policies = probe.marker_policy.iter().flatten();
        for policy in policies.filter(|policy| policy.state == state) {
            labels.extend(policy.labels.clone().into_iter().flatten());
            annotations.extend(policy.annotations.clone().into_iter().flatten());
        }
    }
    labels.retain(|key, value| pod::label(pod, key) != Some(value));
    annotations.retain(|key, value| pod::annotation(pod, key) != Some(value));
    (!labels.is_empty() || !annotations.is_empty()).then(|| Mark {
        pod: PodRef::of(pod),
        labels,
        annotations,
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
