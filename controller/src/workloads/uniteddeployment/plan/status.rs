//! The status.

use super::allocate::Numbers;
use super::conditions::{self, UPDATED};
use super::view::View;
use crate::api::v1alpha1::{SubsetStatus, UnitedDeployment, UnitedDeploymentStatus, UpdateStatus};
use crate::kit::selector;
use crate::pods::{Revisions, pod};
use crate::workloads::uniteddeployment::children::{Child, revision_of};
use crate::workloads::uniteddeployment::observe::Observed;
use crate::workloads::uniteddeployment::settings::is_reserving;

/// The addition to the UnitedDeployment's own selector in the scale subresource, where pods are reserved.
const NOT_RESERVED: &str = ",apps.kruise.io/united-deployment-reserved-pod=false";

/// The status with which a pass begins: each subset has an entry, and those that are gone have none.
pub(super) fn begin(observed: &Observed, revisions: &Revisions) -> UnitedDeploymentStatus {
    let set = &observed.set;
    let mut status = set.status.clone().unwrap_or_default();
    let is_first = status.subset_statuses.is_empty();
    let subsets = &set.spec.topology.subsets;
    status.subset_statuses.retain(|known| {
        let is_wanted = subsets.iter().any(|subset| subset.name == known.name);
        is_wanted || observed.children.iter().any(|child| child.subset() == known.name)
    });
    for subset in subsets {
        if status
            .subset_statuses
            .iter()
            .any(|known| known.name == subset.name)
        {
            continue;
        }
        let mut entry = SubsetStatus {
            name: subset.name.clone(),
            ..SubsetStatus::default()
        };
        if is_reserving(set) && !is_first {
            let message = "newly-created subsets in reservation strategy".to_owned();
            conditions::set_schedulable(&mut entry, false, ("created", message), observed.now);
        }
        status.subset_statuses.push(entry);
    }
    let (current, update) = (&revisions.current.name, &revisions.update.name);
    let (is_updated, said) = match current == update {
        true => (
            true,
            (
                "UnitedDeploymentRevisionUpdated",
                format!("updated to revision {update}"),
            ),
        ),
        false => (
            false,
            (
                "UnitedDeploymentRevisionUpdating",
                format!("updating to revision {update}"),
            ),
        ),
    };
    conditions::set(&mut status, UPDATED, is_updated, said, observed.now);
    status
}

/// The entry of a subset.
pub(super) fn of_subset<'s>(
    status: &'s mut UnitedDeploymentStatus,
    subset: &str,
) -> Option<&'s mut SubsetStatus> {
    status
        .subset_statuses
        .iter_mut()
        .find(|known| known.name == subset)
}

/// Pods of a workload that have the revision, and those of them that are ready.
fn updated(child: &Child, revision: &str) -> (i32, i32) {
    let active = child.pods.iter().filter(|pod| pod.facts().active);
    let updated = active.filter(|pod| revision_of(pod) == revision);
    updated.fold((0, 0), |(all, ready), pod| {
        (all + 1, ready + i32::from(pod::is_ready(pod)))
    })
}

/// Fills in the numbers, when everything else is known.
pub(super) fn finish(
    set: &UnitedDeployment,
    view: &View<'_>,
    revisions: &Revisions,
    (replicas, partitions): (&Numbers, &Numbers),
    status: &mut UnitedDeploymentStatus,
) {
    let update = &revisions.update.name;
    (status.replicas, status.reserved_pods, status.ready_replicas) = (0, 0, 0);
    (status.updated_replicas, status.updated_ready_replicas) = (0, 0);
    for (subset, child) in &view.children {
        let reserved = view.verdict(subset).reserved;
        let (all, ready) = updated(child, update);
        status.replicas += child.replicas - reserved;
        status.reserved_pods += reserved;
        status.ready_replicas += child.ready;
        status.updated_replicas += all;
        status.updated_ready_replicas += ready;
        if let Some(entry) = of_subset(status, subset) {
            entry.replicas = child.replicas;
            entry.ready_replicas = child.ready;
            entry.partition = partitions.get(*subset).copied().unwrap_or(0);
            entry.reserved_pods = reserved;
        }
    }
    status.observed_generation = set.metadata.generation.unwrap_or(0);
    status.subset_replicas = replicas.clone();
    status.label_selector = selector::text(&set.spec.selector);
    if is_reserving(set) {
        status.label_selector.push_str(NOT_RESERVED);
    }
    if status.current_revision.is_empty() {
        status.current_revision.clone_from(&revisions.current.name);
    }
    if status.current_revision != *update && status.updated_ready_replicas >= status.replicas {
        status.current_revision.clone_from(update);
    }
    status.update_status = Some(UpdateStatus {
        updated_revision: update.clone(),
        current_partitions: partitions.clone(),
    });
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
