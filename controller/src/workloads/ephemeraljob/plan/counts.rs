//! The pods that a job means, and how its containers stand in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::api::v1alpha1::EphemeralJob;
use crate::pods::pod::EphemeralState;
use crate::pods::{CachedPod, pod};
use crate::workloads::ephemeraljob::observe::Observed;

/// How a job's containers stand in a pod: the state of the first of these that one of them is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Failed,
    Succeeded,
    Running,
    Waiting,
    Unknown,
}

/// The pods that a job means, by how its containers stand in them.
#[derive(Debug, Default)]
pub(super) struct Counts<'a> {
    /// All of them.
    pub(super) matched: i32,
    pub(super) failed: i32,
    pub(super) succeeded: i32,
    pub(super) running: i32,
    pub(super) waiting: i32,
    /// Those without the containers, in the order in which they get them.
    pub(super) without: Vec<&'a Arc<CachedPod>>,
}

/// The names of a job's containers.
pub(super) fn names(job: &EphemeralJob) -> BTreeSet<&str> {
    let containers = job.spec.template.ephemeral_containers.as_array();
    let names = containers.into_iter().flatten();
    names
        .filter_map(|container| container.get("name").and_then(Value::as_str))
        .collect()
}

impl<'a> Counts<'a> {
    /// Counts the pods of `observed`.
    pub(super) fn of(observed: &'a Observed) -> Self {
        let names = names(&observed.job);
        let uid = observed.job.metadata.uid.as_deref().unwrap_or_default();
        let mut pods: Vec<&Arc<CachedPod>> = observed
            .pods
            .iter()
            .filter(|pod| pod::is_active(pod) && !has_foreign(pod, &names, uid))
            .collect();
        pods.sort_by_key(|pod| {
            let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (created, pod::name(pod).to_owned())
        });
        if let Some(replicas) = observed.job.spec.replicas {
            pods.truncate(usize::try_from(replicas).unwrap_or(0));
        }
        let mut counts = Self {
            matched: i32::try_from(pods.len()).unwrap_or(i32::MAX),
            ..Self::default()
        };
        for pod in pods {
            match stand(pod, &names) {
                Stand::Failed => counts.failed += 1,
                Stand::Succeeded => counts.succeeded += 1,
                Stand::Running => counts.running += 1,
                Stand::Waiting => counts.waiting += 1,
                Stand::Unknown => {}
            }
            if !has_any(pod, &names) {
                counts.without.push(pod);
            }
        }
        counts
    }
}

/// Whether a pod has one of the containers from another job, or from a person.
fn has_foreign(pod: &CachedPod, names: &BTreeSet<&str>, uid: &str) -> bool {
    let containers = pod.spec.ephemeral_containers.iter();
    let mut named = containers.filter(|container| names.contains(&*container.name));
    named.any(|container| &*container.job != uid)
}

fn has_any(pod: &CachedPod, names: &BTreeSet<&str>) -> bool {
    let mut containers = pod.spec.ephemeral_containers.iter();
    containers.any(|container| names.contains(&*container.name))
}

fn stand(pod: &CachedPod, names: &BTreeSet<&str>) -> Stand {
    let states: Vec<EphemeralState> = pod
        .status
        .ephemeral_container_statuses
        .iter()
        .filter(|status| names.contains(&*status.name))
        .map(|status| status.state)
        .collect();
    let is_any = |state: EphemeralState| states.contains(&state);
    if is_any(EphemeralState::Failed) {
        Stand::Failed
    } else if !states.is_empty() && states.iter().all(|state| *state == EphemeralState::Succeeded) {
        Stand::Succeeded
    } else if is_any(EphemeralState::Running) {
        Stand::Running
    } else if is_any(EphemeralState::Waiting) {
        Stand::Waiting
    } else {
        Stand::Unknown
    }
}
