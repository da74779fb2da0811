//! The facts that controllers read off a pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use kruise_api::labels;

use super::CachedPod;

pub use super::lean::{
    Amounts, Container, ContainerStatus, EnvVar, EphemeralState, Pod, PodCondition, RestartPolicy,
};

/// The value of `label`, if the pod has it.
pub fn label<'a>(pod: &'a Pod, label: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(label).map(String::as_str)
}

/// The value of `annotation`, if the pod has it.
pub fn annotation<'a>(pod: &'a Pod, annotation: &str) -> Option<&'a str> {
    pod.metadata
        .annotations
        .as_ref()?
        .get(annotation)
        .map(String::as_str)
}

/// The pod's labels; none are an empty map.
pub fn all_labels(pod: &Pod) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    pod.metadata.labels.as_ref().unwrap_or(&NONE)
}

/// The pod's name.
pub fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The names of pods.
pub fn names<'a>(pods: impl IntoIterator<Item = &'a Arc<CachedPod>>) -> Vec<String> {
    pods.into_iter().map(|pod| name(pod).to_owned()).collect()
}

/// The pod's uid.
pub fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The node it runs on; empty before it is scheduled.
pub fn node(pod: &Pod) -> &str {
    &pod.spec.node_name
}

/// The node it runs on, or the only one that it may run on; empty when there is neither.
pub fn node_or_target(pod: &Pod) -> &str {
    match node(pod) {
        "" => &pod.spec.required.named,
        node => node,
    }
}

/// `Pending`, `Running`, …; empty when unknown.
pub fn phase(pod: &Pod) -> &str {
    &pod.status.phase
}

/// The pod's containers, without init containers.
pub fn containers(pod: &Pod) -> &[Container] {
    &pod.spec.containers
}

/// The statuses of the pod's containers.
pub fn container_statuses(pod: &Pod) -> &[ContainerStatus] {
    &pod.status.container_statuses
}

/// Whether it neither ended nor terminates.
pub fn is_active(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.metadata.deletion_timestamp.is_none()
}

/// The condition of that type.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status
        .conditions
        .iter()
        .find(|condition| &*condition.kind == kind)
}

/// Whether the condition of that type is there and true.
pub fn is_true(pod: &Pod, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|condition| &*condition.status == "True")
}

/// Whether the pod waits for that readiness gate.
pub fn has_gate(pod: &Pod, gate: &str) -> bool {
    pod.spec
        .readiness_gates
        .iter()
        .any(|has| &*has.condition_type == gate)
}

/// Whether the kubelet says it is ready.
pub fn is_ready(pod: &Pod) -> bool {
    is_true(pod, "Ready")
}

/// Whether no node takes it: the scheduler has said so, and it waits.
pub fn is_unschedulable(pod: &Pod) -> bool {
    let condition = condition(pod, "PodScheduled");
    let is_refused = condition
        .is_some_and(|condition| &*condition.status == "False" && &*condition.reason == "Unschedulable");
    is_refused && pod.metadata.deletion_timestamp.is_none() && phase(pod) == "Pending" && node(pod).is_empty()
}

/// Since when it is ready; none when it is not.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let condition = condition(pod, "Ready").filter(|condition| &*condition.status == "True")?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether an update in place has taken it out of service.
pub fn is_taken_out(pod: &Pod) -> bool {
    condition(pod, labels::IN_PLACE_READY).is_some_and(|condition| &*condition.status == "False")
}

/// Running and ready, and no in-place update in the way.
pub fn is_update_ready(pod: &Pod) -> bool {
    phase(pod) == "Running"
        && is_ready(pod)
        && condition(pod, labels::IN_PLACE_READY).is_none_or(|condition| &*condition.status == "True")
}

/// The most often restarted container's count.
pub fn restarts(pod: &Pod) -> i32 {
    container_statuses(pod)
        .iter()
        .map(|status| status.restart_count)
        .max()
        .unwrap_or(0)
}

/// How often its containers were started anew, init containers included, all together.
pub fn all_restarts(pod: &Pod) -> i32 {
    let sum = |total: i32, status: &ContainerStatus| total.saturating_add(status.restart_count);
    container_statuses(pod).iter().fold(pod.status.init_restarts, sum)
}
