//! PersistentPodStates that annotations of a workload ask for, as a pure function.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::v1alpha1::{
    NodeTopology, PersistentPodAnnotation, PersistentPodState, PersistentPodStateSpec, PreferredTopology,
    TargetReference,
};
use crate::kit::controller_of;

/// Annotation of a workload: `true` asks for a PersistentPodState of its name.
const ASKS: &str = "kruise.io/auto-generate-persistent-pod-state";
/// Annotation of a workload: the labels of nodes that a pod must find again, with commas between.
const REQUIRED: &str = "kruise.io/required-persistent-topology";
/// Annotation of a workload: the labels of nodes that a pod would rather find again, with commas between.
const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
/// Annotation of a workload: the annotations of pods that are recorded, with commas between.
const ANNOTATIONS: &str = "kruise.io/persistent-pod-annotations";
/// The weight of the labels that a pod would rather find again.
const WEIGHT: i32 = 100;

/// The values of the annotations of a workload that are about its PersistentPodState.
pub(super) fn wish(metadata: &ObjectMeta) -> [Option<&String>; 4] {
    [ASKS, REQUIRED, PREFERRED, ANNOTATIONS].map(|key| metadata.annotations.as_ref()?.get(key))
}

/// The next step for the PersistentPodState of a workload.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Nothing.
    Nothing,
    /// It is made.
    Create(Box<PersistentPodState>),
    /// Its spec is replaced.
    Replace(Box<PersistentPodState>),
    /// It is deleted.
    Delete,
}

/// The next step for a workload, with the PersistentPodState of its name if there is one. One that the workload does not control is
/// never deleted.
pub(super) fn step(
    workload: &TargetReference,
    metadata: &ObjectMeta,
    known: Option<&PersistentPodState>,
) -> Step {
    if metadata.deletion_timestamp.is_some() {
        return Step::Nothing;
    }
    let uid = metadata.uid.clone().unwrap_or_default();
    let [asks, ..] = wish(metadata);
    if asks.map(String::as_str) != Some("true") {
        let controller = known.and_then(|known| controller_of(&known.metadata));
        let is_own = controller.is_some_and(|controller| controller.uid == uid);
        return if is_own { Step::Delete } else { Step::Nothing };
    }
    let Some(spec) = spec(workload, metadata) else {
        return Step::Nothing;
    };
    let Some(known) = known else {
        return Step::Create(Box::new(made(workload, metadata, uid, spec)));
    };
    if known.spec == spec {
        return Step::Nothing;
    }
    Step::Replace(Box::new(PersistentPodState {
        spec,
        ..known.clone()
    }))
}

/// The keys of a list with commas between; none for an empty one.
fn keys(list: Option<&String>) -> Option<Vec<String>> {
    let keys = list?.split(',').map(str::trim).filter(|key| !key.is_empty());
    let keys: Vec<String> = keys.map(str::to_owned).collect();
    (!keys.is_empty()).then_some(keys)
}

/// The spec that the annotations ask for; none if they name no labels of nodes.
fn spec(workload: &TargetReference, metadata: &ObjectMeta) -> Option<PersistentPodStateSpec> {
    let [_, required, preferred, annotations] = wish(metadata);
    let topology = |list| keys(list).map(|node_topology_keys| NodeTopology { node_topology_keys });
    let (required, preferred) = (topology(required), topology(preferred));
    if required.is_none() && preferred.is_none() {
        return None;
    }
    let term = |preference| PreferredTopology {
        weight: WEIGHT,
        preference,
    };
    let annotation = |key| PersistentPodAnnotation { key };
    Some(PersistentPodStateSpec {
        target_ref: workload.clone(),
        persistent_pod_annotations: keys(annotations).map(|keys| keys.into_iter().map(annotation).collect()),
        required_persistent_topology: required,
        preferred_persistent_topology: preferred.map(|preference| vec![term(preference)]),
        persistent_pod_state_retention_policy: None,
    })
}

/// The PersistentPodState of a workload, which goes with it.
fn made(
    workload: &TargetReference,
    metadata: &ObjectMeta,
    uid: String,
    spec: PersistentPodStateSpec,
) -> PersistentPodState {
    let owner = OwnerReference {
        api_version: workload.api_version.clone(),
        kind: workload.kind.clone(),
        name: workload.name.clone(),
        uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let mut state = PersistentPodState::new(&workload.name, spec);
    state.metadata.namespace = metadata.namespace.clone();
    state.metadata.owner_references = Some(vec![owner]);
    state
}

#[cfg(test)]
#[path = "auto_tests.rs"]
mod tests;
