//! The subset of a new pod, and the records of pods that come and go.

use client_kit::Seed;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::room::{UNLIMITED, depends, empty, limit};
use super::version::IGNORED;
use crate::api::v1alpha1::{WorkloadSpread, WorkloadSpreadStatus, WorkloadSpreadSubsetStatus};

/// The subset of a new pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Its name.
    pub(super) subset: String,
    /// The id that the pod got, if it has no name yet.
    pub(super) uid: String,
}

/// The decision on a pod: its subset, if it has one, and the next status, if it changes.
pub(super) type Decision = (Option<Chosen>, Option<WorkloadSpreadStatus>);

/// Whether the subset of every pod is known without any record.
pub(super) fn has_one_subset(spread: &WorkloadSpread) -> bool {
    matches!(&spread.spec.subsets[..], [only] if only.max_replicas.is_none())
}

/// Whether the pods of the workload have ordinals.
pub(super) fn has_ordinals(spread: &WorkloadSpread) -> bool {
    spread
        .spec
        .target_ref
        .as_ref()
        .is_some_and(|target| target.kind == "StatefulSet")
}

fn is_schedulable(status: &WorkloadSpreadSubsetStatus) -> bool {
    let mut conditions = status.conditions.iter();
    !conditions.any(|condition| condition.kind == "Schedulable" && condition.status == "False")
}

/// The ordinal at the end of a pod's name; −1 if there is none.
fn ordinal(pod: &str) -> i64 {
    let digits = pod.rsplit_once('-').map_or("", |(_, digits)| digits);
    match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().unwrap_or(-1),
        false => -1,
    }
}

/// The subset of a pod with an ordinal: the first subsets have the first ordinals.
pub(super) fn by_ordinal(spread: &WorkloadSpread, pod: &str) -> Option<String> {
    let ordinal = ordinal(pod);
    let none = WorkloadSpreadStatus::default();
    let statuses = &spread.status.as_ref().unwrap_or(&none).subset_statuses;
    let mut end: i64 = 0;
    for subset in &spread.spec.subsets {
        let status = statuses.iter().find(|status| status.name == subset.name);
        if status.is_some_and(|status| !is_schedulable(status)) {
            continue;
        }
        end += match &subset.max_replicas {
            None => i64::from(i32::MAX),
            Some(IntOrString::Int(limit)) => i64::from(*limit),
            // The webhook of spreads does not take it.
            Some(IntOrString::String(_)) => 0,
        };
        if ordinal < end {
            return Some(subset.name.clone());
        }
    }
    None
}

/// Whether the statuses without versions count: there are no others, and versions are ignored. The definition of an older OpenKruise has no
/// others, so those that are written are lost.
fn counts_without_versions(status: &WorkloadSpreadStatus, version: &str) -> bool {
    version == IGNORED && status.versioned_subset_statuses.is_empty()
}

/// The statuses of the subsets in a version, before anything has been recorded if there are none.
fn statuses(spread: &WorkloadSpread, version: &str, replicas: i32) -> Vec<WorkloadSpreadSubsetStatus> {
    let known = spread
        .status
        .as_ref()
        .and_then(|status| match counts_without_versions(status, version) {
            true => Some(&status.subset_statuses),
            false => status.versioned_subset_statuses.get(version),
        });
    match known.filter(|known| !known.is_empty()) {
        Some(known) => known.clone(),
        None => empty(spread, replicas),
    }
}

/// The status with other statuses of the subsets in a version.
fn with(
    spread: &WorkloadSpread,
    version: &str,
    statuses: Vec<WorkloadSpreadSubsetStatus>,
) -> WorkloadSpreadStatus {
    let mut status = spread.status.clone().unwrap_or_default();
    if counts_without_versions(&status, version) {
        status.subset_statuses.clone_from(&statuses);
    }
    status
        .versioned_subset_statuses
        .insert(version.to_owned(), statuses);
    status
}

/// A pod that comes or goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moving<'a> {
    /// Its name; empty if the server has yet to find one.
    pub(super) name: &'a str,
    /// The version of its workload.
    pub(super) version: &'a str,
    /// How many pods the workload is to have.
    pub(super) replicas: i32,
    /// The seed of an id.
    pub(super) seed: Seed,
    /// When.
    pub(super) now: Timestamp,
}

/// Chooses the subset of a new pod, and takes its place in it.
pub(super) fn come(spread: &WorkloadSpread, pod: Moving<'_>) -> Decision {
    let mut statuses = statuses(spread, pod.version, pod.replicas);
    let chosen = |subset: &str, uid: &str| Chosen {
        subset: subset.to_owned(),
        uid: uid.to_owned(),
    };
    if !pod.name.is_empty()
        && let Some(known) = statuses.iter().find(|status| is_recorded(status, pod.name))
    {
        return (Some(chosen(&known.name, "")), None);
    }
    if !statuses.iter().any(takes) && depends(spread) {
        count_again(spread, &mut statuses, pod.replicas);
    }
    let Some(status) = statuses.iter_mut().find(|status| takes(status)) else {
        return (None, None);
    };
    if status.missing_replicas == UNLIMITED {
        return (Some(chosen(&status.name, "")), None);
    }
    let uid = match pod.name.is_empty() {
        true => pod.seed.random().uuid(),
        false => String::new(),
    };
    let id = if uid.is_empty() { pod.name } else { &uid };
    status.missing_replicas -= 1;
    status.creating_pods.insert(id.to_owned(), Time(pod.now));
    let chosen = chosen(&status.name, &uid);
    (Some(chosen), Some(with(spread, pod.version, statuses)))
}

/// Whether a subset takes a pod.
fn takes(status: &WorkloadSpreadSubsetStatus) -> bool {
    is_schedulable(status) && (status.missing_replicas > 0 || status.missing_replicas == UNLIMITED)
}

/// Counts the missing pods of subsets when their workload is to have so many, since it may have grown after the last pass. The real
/// manager leaves such pods without a subset.
fn count_again(spread: &WorkloadSpread, statuses: &mut [WorkloadSpreadSubsetStatus], replicas: i32) {
    for status in statuses {
        let subset = spread
            .spec
            .subsets
            .iter()
            .find(|subset| subset.name == status.name);
        let Some(Ok(Some(limit))) = subset.map(|subset| limit(subset, replicas)) else {
            continue;
        };
        let coming = i32::try_from(status.creating_pods.len()).unwrap_or(i32::MAX);
        let taken = status.replicas.saturating_add(coming);
        status.missing_replicas = limit.saturating_sub(taken).max(0);
    }
}

fn is_recorded(status: &WorkloadSpreadSubsetStatus, pod: &str) -> bool {
    status.creating_pods.contains_key(pod) || status.deleting_pods.contains_key(pod)
}

/// Records a pod that goes from its subset, and gives its place away.
pub(super) fn go(spread: &WorkloadSpread, subset: &str, pod: Moving<'_>) -> Option<WorkloadSpreadStatus> {
    let mut statuses = statuses(spread, pod.version, pod.replicas);
    if statuses.iter().any(|status| is_recorded(status, pod.name)) {
        return None;
    }
    let status = statuses.iter_mut().find(|status| status.name == subset)?;
    if status.missing_replicas == UNLIMITED {
        return None;
    }
    status.missing_replicas = status.missing_replicas.saturating_add(1);
    status.deleting_pods.insert(pod.name.to_owned(), Time(pod.now));
    Some(with(spread, pod.version, statuses))
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
