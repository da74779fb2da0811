//! The marks of one pod: the conditions, labels and annotations that follow from the results of its probes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1alpha1::{ContainerProbeState, PodContainerProbe, PodProbeMarker, PodProbeStatus};
use crate::kit::ObjectKey;
use crate::pods::PodRef;
use crate::pods::pod::{self, Pod};

/// The changes of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marks {
    /// The pod's namespace.
    pub(super) namespace: String,
    /// The pod.
    pub(super) pod: PodRef,
    /// Its conditions.
    pub(super) conditions: Vec<Condition>,
    /// Its labels; none for one that goes.
    pub(super) labels: BTreeMap<String, Option<String>>,
    /// Its annotations; none for one that goes.
    pub(super) annotations: BTreeMap<String, Option<String>>,
}

/// A condition of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    /// Its type.
    pub(super) kind: String,
    /// Whether it is true.
    pub(super) status: bool,
    /// When the probe ran last.
    pub(super) last_probe_time: Option<Time>,
    /// Since when its result is that.
    pub(super) last_transition_time: Option<Time>,
    /// The output of the probe.
    pub(super) message: String,
}

/// The changes of a pod by the results of its probes, if there are any. Results of markers that are gone or being deleted do not count;
/// of two for one condition the first counts, of two for one label the last.
pub(super) fn marks(
    pod: &Pod,
    results: &PodProbeStatus,
    markers: &BTreeMap<ObjectKey, Arc<PodProbeMarker>>,
) -> Option<Marks> {
    let mut conditions: Vec<Condition> = Vec::new();
    let mut known = BTreeSet::new();
    let (mut labels, mut annotations) = (BTreeMap::new(), BTreeMap::new());
    for result in &results.probe_states {
        let Some(probe) = probe_of(result, &results.namespace, markers) else {
            continue;
        };
        let kind = &*probe.pod_condition_type;
        if !kind.is_empty() && known.insert(kind.to_owned()) {
            conditions.push(condition(kind, result));
        }
        mark(probe, &result.state, &mut labels, &mut annotations);
    }
    conditions.retain(|condition| !has(pod, condition));
    labels.retain(|key, value| pod::label(pod, key) != value.as_deref());
    annotations.retain(|key, value| pod::annotation(pod, key) != value.as_deref());
    let changes = !conditions.is_empty() || !labels.is_empty() || !annotations.is_empty();
    changes.then(|| Marks {
        namespace: results.namespace.clone(),
        pod: PodRef::of(pod),
        conditions,
        labels,
        annotations,
    })
}

/// The probe of a result, as its marker has it.
fn probe_of<'m>(
    result: &ContainerProbeState,
    namespace: &str,
    markers: &'m BTreeMap<ObjectKey, Arc<PodProbeMarker>>,
) -> Option<&'m PodContainerProbe> {
    if result.state.is_empty() {
        return None;
    }
    let (marker, name) = result.name.split_once('#')?;
    let marker = markers.get(&ObjectKey::new(namespace, marker))?;
    if marker.metadata.deletion_timestamp.is_some() {
        return None;
    }
    marker.spec.probes.iter().find(|probe| probe.name == name)
}

fn condition(kind: &str, result: &ContainerProbeState) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: result.state == "Succeeded",
        last_probe_time: result.last_probe_time.clone(),
        last_transition_time: result.last_transition_time.clone(),
        message: result.message.clone(),
    }
}

/// Whether a pod has a condition with this status and message.
fn has(pod: &Pod, condition: &Condition) -> bool {
    let status = if condition.status { "True" } else { "False" };
    pod::condition(pod, &condition.kind).is_some_and(|known| {
        (&*known.status, known.message.as_deref().unwrap_or_default()) == (status, &*condition.message)
    })
}

/// Takes away the marks of the last policy of another state, and gives those of the policy of this state.
fn mark(
    probe: &PodContainerProbe,
    state: &str,
    labels: &mut BTreeMap<String, Option<String>>,
    annotations: &mut BTreeMap<String, Option<String>>,
) {
    let policies = || probe.marker_policy.iter().flatten();
    if let Some(opposite) = policies().rfind(|policy| policy.state != state) {
        let gone = |map: &Option<BTreeMap<String, String>>| -> Vec<(String, Option<String>)> {
            map.iter().flatten().map(|(key, _)| (key.clone(), None)).collect()
        };
        labels.extend(gone(&opposite.labels));
        annotations.extend(gone(&opposite.annotations));
    }
    if let Some(matched) = policies().rfind(|policy| policy.state == state) {
        let given = |map: &Option<BTreeMap<String, String>>| -> Vec<(String, Option<String>)> {
            let pairs = map.iter().flatten();
            pairs
                .map(|(key, value)| (key.clone(), Some(value.clone())))
                .collect()
        };
        labels.extend(given(&matched.labels));
        annotations.extend(given(&matched.annotations));
    }
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
