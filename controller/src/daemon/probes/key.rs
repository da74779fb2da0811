//! The name of a probe on a node.

use crate::api::v1alpha1::{ContainerProbe, NodePodProbeSpec, PodProbe};
use crate::kit::Subject;

/// A probe of a container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProbeKey {
    /// The pod's namespace.
    pub(super) namespace: String,
    /// The pod.
    pub(super) pod: String,
    /// Its uid.
    pub(super) uid: String,
    /// The container.
    pub(super) container: String,
    /// The probe's name.
    pub(super) probe: String,
}

impl ProbeKey {
    /// The key of a probe of a NodePodProbe.
    pub(super) fn of(pod: &PodProbe, probe: &ContainerProbe) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            uid: pod.uid.clone(),
            container: probe.container_name.clone(),
            probe: probe.name.clone(),
        }
    }

    /// The probe, and the pod that it is of.
    pub(super) fn find<'s>(&self, spec: &'s NodePodProbeSpec) -> Option<(&'s PodProbe, &'s ContainerProbe)> {
        all(spec).find(|(pod, probe)| *self == Self::of(pod, probe))
    }
}

/// All probes of a node.
pub(super) fn all(spec: &NodePodProbeSpec) -> impl Iterator<Item = (&PodProbe, &ContainerProbe)> {
    let pods = spec.pod_probes.iter();
    pods.flat_map(|pod| pod.probes.iter().map(move |probe| (pod, probe)))
}

impl Subject for ProbeKey {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.pod
    }
}
