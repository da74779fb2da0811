//! The rules: where the pods of a set are, as a pure function.

use std::collections::BTreeMap;

use kube::Resource as _;

use super::observe::Observed;
use super::targets::Target;
use crate::api::v1alpha1::{PersistentPodStateSpec, PersistentPodStateStatus, PodState};
use crate::pods::{CachedNode, CachedPod, ordinals, pod};

/// The status of the observed pods. Without a set there is nothing to record.
pub(super) fn plan(observed: &Observed) -> PersistentPodStateStatus {
    let state = &observed.state;
    let mut status = PersistentPodStateStatus {
        observed_generation: state.metadata.generation.unwrap_or_default(),
        pod_states: BTreeMap::new(),
    };
    let Some(target) = &observed.target else {
        return status;
    };
    let known = state.status.as_ref().map(|status| &status.pod_states);
    status.pod_states = known.cloned().unwrap_or_default();
    for pod in observed.pods.iter().filter(|pod| pod::is_ready(pod)) {
        let Some(node) = observed.nodes.get(pod::node(pod)) else {
            continue;
        };
        let name = pod::name(pod);
        if !status
            .pod_states
            .get(name)
            .is_some_and(|known| stays(known, &state.spec, node))
        {
            status
                .pod_states
                .insert(name.to_owned(), record(&state.spec, pod, node));
        }
    }
    if state.spec.persistent_pod_state_retention_policy.as_deref() != Some("WhenDeleted") {
        let set = &state.spec.target_ref.name;
        status
            .pod_states
            .retain(|name, _| is_there(observed, name) || is_wanted(target, set, name));
    }
    status
}

/// Whether a record of the pod is still right: it names the node, and all labels that are asked for. With annotations it is made anew.
fn stays(known: &PodState, spec: &PersistentPodStateSpec, node: &CachedNode) -> bool {
    known.node_name == node.name()
        && known.annotations.is_empty()
        && spec.persistent_pod_annotations.iter().flatten().next().is_none()
        && spec
            .topology_keys()
            .all(|key| known.node_topology_labels.contains_key(key))
        && known
            .node_topology_labels
            .keys()
            .all(|key| spec.topology_keys().any(|wanted| wanted == key))
}

/// Where a pod is.
fn record(spec: &PersistentPodStateSpec, pod: &CachedPod, node: &CachedNode) -> PodState {
    let labels = node.meta().labels.as_ref();
    let label = |key: &str| Some((key.to_owned(), labels?.get(key)?.clone()));
    let annotations = spec.persistent_pod_annotations.iter().flatten();
    PodState {
        node_name: node.name().to_owned(),
        node_topology_labels: spec.topology_keys().filter_map(label).collect(),
        annotations: annotations
            .filter_map(|wanted| {
                let value = pod::annotation(pod, &wanted.key)?;
                Some((wanted.key.clone(), value.to_owned()))
            })
            .collect(),
    }
}

fn is_there(observed: &Observed, name: &str) -> bool {
    observed.pods.iter().any(|pod| pod::name(pod) == name)
}

fn is_wanted(target: &Target, set: &str, name: &str) -> bool {
    ordinals::ordinal_of(set, name).is_some_and(|ordinal| target.ordinals.contains(&ordinal))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
