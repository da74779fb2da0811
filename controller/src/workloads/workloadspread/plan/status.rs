//! The status of a spread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::EventType;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::adaptive::{self, sooner, until};
use super::groups::{BySubset, Groups};
use crate::api::v1alpha1::{
    WorkloadSpread, WorkloadSpreadStatus, WorkloadSpreadSubset, WorkloadSpreadSubsetStatus,
};
use crate::injection::spreads::matched::Matched;
use crate::injection::spreads::room::{UNLIMITED, limit};
use crate::pods::{CachedPod, pod};

/// How long a pod may take to be created (OpenKruise: the same).
const CREATION: SignedDuration = SignedDuration::from_secs(30);
/// How long a pod may take to begin to terminate (OpenKruise: the same).
const DELETION: SignedDuration = SignedDuration::from_secs(15);

/// The next status, and its consequences.
#[derive(Debug, Clone, Default)]
pub(in crate::workloads::workloadspread) struct Said {
    /// The status.
    pub(in crate::workloads::workloadspread) status: WorkloadSpreadStatus,
    /// Events about the spread.
    pub(in crate::workloads::workloadspread) events: Vec<(EventType, &'static str, String)>,
    /// Pods that got no node in time, with their subsets.
    pub(in crate::workloads::workloadspread) failed: Vec<(Arc<CachedPod>, String)>,
    /// When to look again.
    pub(in crate::workloads::workloadspread) requeue: Option<Duration>,
}

/// The next status of a spread whose workload is to have so many pods.
pub(in crate::workloads::workloadspread) fn status(
    spread: &WorkloadSpread,
    groups: &Groups,
    replicas: i32,
    now: Timestamp,
) -> Said {
    let old = spread.status.clone().unwrap_or_default();
    let count = spread.spec.subsets.len();
    let mut said = Said::default();
    let look = Look {
        spread,
        replicas,
        now,
    };
    let all = look.subsets(&old.subset_statuses, &groups.together(count), &mut said);
    // Pods are deleted for the sake of all versions together.
    let failed = std::mem::take(&mut said.failed);
    let mut versions = BTreeMap::new();
    let none = vec![Vec::new(); count + 1];
    let known = old
        .versioned_subset_statuses
        .keys()
        .filter(|version| !groups.0.contains_key(*version));
    let of_groups = groups.0.iter();
    for (version, pods) in of_groups.chain(known.map(|version| (version, &none))) {
        let before = old
            .versioned_subset_statuses
            .get(version)
            .map_or(&[][..], Vec::as_slice);
        let mut of_version = Said::default();
        let statuses = look.subsets(before, pods, &mut of_version);
        said.events.append(&mut of_version.events);
        let is_awaited = statuses.iter().any(|status| !status.creating_pods.is_empty());
        if groups.0.contains_key(version) || is_awaited {
            said.requeue = sooner(said.requeue, of_version.requeue);
            versions.insert(version.clone(), statuses);
        }
    }
    said.failed = failed;
    said.status = WorkloadSpreadStatus {
        observed_generation: spread.metadata.generation.unwrap_or_default(),
        subset_statuses: all,
        versioned_subset_statuses: versions,
    };
    said
}

/// A look at the subsets of a spread.
struct Look<'a> {
    spread: &'a WorkloadSpread,
    replicas: i32,
    now: Timestamp,
}

impl Look<'_> {
    fn subsets(
        &self,
        old: &[WorkloadSpreadSubsetStatus],
        pods: &BySubset,
        said: &mut Said,
    ) -> Vec<WorkloadSpreadSubsetStatus> {
        let subsets = &self.spread.spec.subsets;
        let each = subsets.iter().zip(pods).enumerate().map(|(at, (subset, pods))| {
            let old = old.iter().find(|old| old.name == subset.name);
            let mut status = self.subset(subset, old, pods, said);
            let is_last = at + 1 == subsets.len();
            let found = adaptive::look(self.spread, is_last, old, pods, self.now);
            status.conditions = found.condition.into_iter().collect();
            said.requeue = sooner(said.requeue, found.requeue);
            said.failed.extend(found.failed.into_iter().map(|pod| (pod, subset.name.clone())));
            if found.recovers {
                let (namespace, name) = self.names();
                let message = format!(
                    "Subset {} of WorkloadSpread {namespace}/{name} is recovered from unschedulable to schedulable",
                    subset.name
                );
                said.events.push((EventType::Normal, "RecoverSchedulable", message));
            }
            status
        });
        each.collect()
    }

    fn names(&self) -> (String, String) {
        (
            self.spread.namespace().unwrap_or_default(),
            self.spread.name_any(),
        )
    }

    fn subset(
        &self,
        subset: &WorkloadSpreadSubset,
        old: Option<&WorkloadSpreadSubsetStatus>,
        pods: &[Arc<CachedPod>],
        said: &mut Said,
    ) -> WorkloadSpreadSubsetStatus {
        let none = WorkloadSpreadSubsetStatus::default();
        let old = old.unwrap_or(&none);
        // A limit that cannot be read, which the webhook does not take, leaves no room.
        let most = limit(subset, self.replicas)
            .unwrap_or(Some(0))
            .unwrap_or(UNLIMITED);
        let mut creating = old.creating_pods.clone();
        let mut deleting = BTreeMap::new();
        let (mut replicas, mut missing) = (0_i32, most);
        for pod in pods {
            creating.remove(&id_of(pod));
            if !pod.facts().active {
                continue;
            }
            replicas = replicas.saturating_add(1);
            if missing > 0 {
                missing -= 1;
            }
            let name = pod::name(pod);
            let Some(time) = old.deleting_pods.get(name) else {
                continue;
            };
            if let Some(left) = until(time.0, DELETION, self.now) {
                deleting.insert(name.to_owned(), time.clone());
                said.requeue = sooner(said.requeue, Some(left));
                if missing != UNLIMITED && missing < most {
                    missing += 1;
                }
            } else {
                self.overdue("DeletePodFailed", name, "deleted", said);
            }
        }
        let mut created = BTreeMap::new();
        for (id, time) in creating {
            if let Some(left) = until(time.0, CREATION, self.now) {
                created.insert(id, time);
                said.requeue = sooner(said.requeue, Some(left));
                if missing > 0 {
                    missing -= 1;
                }
            } else {
                self.overdue("CreatePodFailed", &id, "created", said);
            }
        }
        WorkloadSpreadSubsetStatus {
            name: subset.name.clone(),
            conditions: Vec::new(),
            replicas,
            missing_replicas: missing,
            creating_pods: created,
            deleting_pods: deleting,
        }
    }

    /// Tells of a pod that did not come or go in time.
    fn overdue(&self, reason: &'static str, pod: &str, deed: &str, said: &mut Said) {
        let (namespace, _) = self.names();
        let message = format!("Pod {namespace}/{pod} was expected to be {deed} but it wasn't");
        said.events.push((EventType::Warning, reason, message));
    }
}

/// The id under which a pod's creation is recorded.
fn id_of(pod: &CachedPod) -> String {
    let uid = Matched::of(pod)
        .map(|matched| matched.uid)
        .filter(|uid| !uid.is_empty());
    uid.unwrap_or_else(|| pod::name(pod).to_owned())
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
