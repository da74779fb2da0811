//! The questions of the rules about a set and its pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Which;
use crate::api::v1alpha1::{Lifecycle, LifecycleHook};
use crate::api::v1beta1::{RollingUpdateStatefulSetStrategy, StatefulSet};
use crate::kit::Owner;
use crate::pods::availability::{available_at, has_revision, is_available};
use crate::pods::lifecycle::state;
use crate::pods::pod;
use crate::pods::refresh::{Care, Ways};
use crate::pods::{CachedPod, Revisions};
use crate::workloads::statefulset::gates::Gates;
use crate::workloads::statefulset::observe::Observed;
use crate::workloads::statefulset::ordinals::own_ordinals;
use crate::workloads::statefulset::settings::Settings;

/// The place of an ordinal that the set has.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// The ordinal.
    pub(super) ordinal: i32,
    /// The pod that is there, or the revision of the one that is to come.
    pub(super) pod: Result<Arc<CachedPod>, Which>,
}

/// The observed set, with its numbers worked out and its pods split into slots and condemned ones.
pub(super) struct View<'a> {
    pub(super) observed: &'a Observed,
    pub(super) owner: Owner,
    pub(super) revisions: &'a Revisions,
    pub(super) settings: Settings,
    pub(super) gates: Gates,
    /// The ordinals that the set has, lowest first.
    pub(super) slots: Vec<Slot>,
    /// The pods of other ordinals, highest first.
    pub(super) condemned: Vec<(i32, Arc<CachedPod>)>,
}

impl<'a> View<'a> {
    pub(super) fn new(observed: &'a Observed, revisions: &'a Revisions, gates: Gates) -> Self {
        let settings = Settings::of(&observed.set, gates);
        let own = own_ordinals(&observed.set, gates);
        let is_condemned = |ordinal: &i32| own.binary_search(ordinal).is_err();
        let condemned = observed.pods.iter().rev();
        let condemned = condemned
            .filter(|(ordinal, _)| is_condemned(ordinal))
            .map(|(ordinal, pod)| (*ordinal, Arc::clone(pod)))
            .collect();
        let mut view = Self {
            observed,
            owner: Owner::of(observed.set.as_ref()),
            revisions,
            settings,
            gates,
            slots: Vec::with_capacity(own.len()),
            condemned,
        };
        view.fill(&own);
        view
    }

    /// Fills the slots: with the pods that are there, and the revisions of those that are not.
    fn fill(&mut self, own: &[i32]) {
        let pods = own.iter().filter_map(|ordinal| self.observed.pods.get(ordinal));
        // Pods in other slots that are not updated; those that are to come join them one by one.
        let mut old = pods.filter(|pod| !self.counts_as_updated(pod)).count();
        let status = self.set().status.as_ref();
        let current_replicas = status.map_or(0, |status| status.current_replicas);
        for (before, ordinal) in (0..).zip(own) {
            let pod = match self.observed.pods.get(ordinal) {
                Some(pod) => Ok(Arc::clone(pod)),
                None => {
                    let is_current = match self.settings.partition {
                        _ if !self.settings.rolling => false,
                        None => {
                            i64::from(*ordinal) < i64::from(self.settings.start) + i64::from(current_replicas)
                        }
                        Some(partition) if self.is_unordered() => {
                            i32::try_from(old).unwrap_or(i32::MAX) < partition
                        }
                        Some(partition) => before < partition,
                    };
                    if is_current && self.revisions.current.name != self.revisions.update.name {
                        old += 1;
                    }
                    Err(if is_current { Which::Current } else { Which::Update })
                }
            };
            self.slots.push(Slot {
                ordinal: *ordinal,
                pod,
            });
        }
    }

    pub(super) fn set(&self) -> &StatefulSet {
        &self.observed.set
    }

    pub(super) fn now(&self) -> Timestamp {
        self.observed.now
    }

    pub(super) fn rolling(&self) -> Option<&RollingUpdateStatefulSetStrategy> {
        self.set().spec.update_strategy.as_ref()?.rolling_update.as_ref()
    }

    pub(super) fn is_unordered(&self) -> bool {
        self.rolling()
            .is_some_and(|rolling| rolling.unordered_update.is_some())
    }

    pub(super) fn lifecycle(&self) -> Option<&Lifecycle> {
        self.set().spec.lifecycle.as_ref()
    }

    pub(super) fn pre_delete(&self) -> Option<&LifecycleHook> {
        self.lifecycle()?.pre_delete.as_ref()
    }

    pub(super) fn in_place_hook(&self) -> Option<&LifecycleHook> {
        self.lifecycle()?.in_place_update.as_ref()
    }

    /// How pods are looked after.
    pub(super) fn care<'c>(&'c self, pods: &'c [Arc<CachedPod>]) -> Care<'c> {
        Care {
            pods,
            lifecycle: self.lifecycle(),
            update_revision: &self.revisions.update.name,
            now: self.now(),
            ways: Ways {
                template_hash: false,
                normal_once_scheduled: false,
                updated_without_hook: true,
            },
        }
    }

    /// Whether the pod has the update revision.
    pub(super) fn is_updated(&self, pod: &CachedPod) -> bool {
        has_revision(pod, &self.revisions.update.name)
    }

    /// The same; with the gate also for a pod that a hook holds before its update.
    pub(super) fn counts_as_updated(&self, pod: &CachedPod) -> bool {
        let held = self.gates.preparing_update_as_update && &*pod.facts().state == state::PREPARING_UPDATE;
        held || self.is_updated(pod)
    }

    /// Whether the pod is in service, and has been for `minReadySeconds`.
    pub(super) fn is_available(&self, pod: &CachedPod) -> bool {
        is_available(pod, self.settings.min_ready_s, self.now())
    }

    /// Whether the pod is in service and stays.
    pub(super) fn is_healthy(&self, pod: &CachedPod) -> bool {
        is_available(pod, 0, self.now()) && !is_terminating(pod)
    }

    /// The time until a pod that is in service has been so for `minReadySeconds`.
    pub(super) fn wait_of(&self, pod: &CachedPod) -> Option<Duration> {
        if self.is_available(pod) || !is_available(pod, 0, self.now()) {
            return None;
        }
        let left = available_at(pod, self.settings.min_ready_s)?.duration_since(self.now());
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        // Kubernetes asks for more than `minReadySeconds`, hence the millisecond.
        Some(left + Duration::from_millis(1))
    }

    /// The pods in slots.
    pub(super) fn pods_in_slots(&self) -> impl Iterator<Item = &Arc<CachedPod>> {
        self.slots.iter().filter_map(|slot| slot.pod.as_ref().ok())
    }

    /// The pods in slots, then the condemned ones.
    pub(super) fn all_pods(&self) -> impl Iterator<Item = &Arc<CachedPod>> {
        let condemned = self.condemned.iter().map(|(_, pod)| pod);
        self.pods_in_slots().chain(condemned)
    }
}

/// Whether the pod is being deleted.
pub(super) fn is_terminating(pod: &CachedPod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod runs and is ready, whatever else.
pub(super) fn is_running_and_ready(pod: &CachedPod) -> bool {
    pod::phase(pod) == "Running" && pod::is_ready(pod)
}
