//! The facts about a set and its pods that the rules use.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::{Selector, SelectorExt};

use crate::api::labels;
use crate::api::v1alpha1::{CloneSet, Lifecycle, LifecycleHook};
use crate::pods::availability::{has_revision, is_available};
use crate::pods::lifecycle::state;
use crate::pods::pod;
use crate::pods::revision;
use crate::pods::{CachedPod, Revisions};
use crate::workloads::cloneset::diff::{Counts, Diff, Situation, diff};
use crate::workloads::cloneset::gates::Gates;
use crate::workloads::cloneset::observe::Observed;
use crate::workloads::cloneset::settings::Settings;

/// The observed set, with its numbers worked out and its pods classified.
pub(crate) struct View<'a> {
    pub(crate) observed: &'a Observed,
    pub(crate) revisions: &'a Revisions,
    pub(crate) settings: Settings,
    /// Pods that neither ended nor terminate, as the cache hands them out.
    pub(crate) pods: Vec<Arc<CachedPod>>,
    to_delete: BTreeSet<&'a str>,
    pub(crate) gates: Gates,
}

impl<'a> View<'a> {
    pub(crate) fn new(observed: &'a Observed, revisions: &'a Revisions, gates: Gates) -> Self {
        let set = &observed.set;
        let selector = Selector::try_from(set.spec.selector.clone()).unwrap_or_default();
        let pods: Vec<Arc<CachedPod>> = observed
            .pods
            .iter()
            .filter(|pod| pod.facts().active && selector.matches(pod::all_labels(pod)))
            .cloned()
            .collect();
        let strategy = set.spec.scale_strategy.as_ref();
        let to_delete = strategy
            .into_iter()
            .flat_map(|s| s.pods_to_delete.iter().flatten())
            .map(String::as_str);
        Self {
            observed,
            revisions,
            settings: Settings::of(set),
            pods,
            to_delete: to_delete.collect(),
            gates,
        }
    }

    pub(crate) fn set(&self) -> &CloneSet {
        &self.observed.set
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.observed.now
    }

    pub(crate) fn lifecycle(&self) -> Option<&Lifecycle> {
        self.set().spec.lifecycle.as_ref()
    }

    pub(crate) fn pre_delete(&self) -> Option<&LifecycleHook> {
        self.lifecycle()?.pre_delete.as_ref()
    }

    pub(crate) fn in_place_hook(&self) -> Option<&LifecycleHook> {
        self.lifecycle()?.in_place_update.as_ref()
    }

    /// `ReCreate`, `InPlaceIfPossible`, …
    pub(crate) fn update_type(&self) -> &str {
        self.set()
            .spec
            .update_strategy
            .as_ref()
            .and_then(|strategy| strategy.kind.as_deref())
            .unwrap_or("ReCreate")
    }

    /// The seconds a pod is out of service before it is changed in place.
    pub(crate) fn grace_seconds(&self) -> i32 {
        let strategy = self.set().spec.update_strategy.as_ref();
        strategy
            .and_then(|strategy| strategy.in_place_update_strategy.as_ref()?.grace_period_seconds)
            .unwrap_or(0)
    }

    /// Whether the pod has the update revision.
    pub(crate) fn is_updated(&self, pod: &CachedPod) -> bool {
        has_revision(pod, &self.revisions.update.name)
    }

    /// Whether the pod counts as updated when the set is scaled: with the gate also one that is held before its update.
    pub(crate) fn is_updated_for_scaling(&self, pod: &CachedPod) -> bool {
        let held = self.gates.preparing_update_as_update && &*pod.facts().state == state::PREPARING_UPDATE;
        held || self.is_updated(pod)
    }

    /// The value of the pods' label for a revision.
    pub(crate) fn revision_label<'n>(&self, name: &'n str) -> &'n str {
        if self.gates.short_hash {
            revision::short(name)
        } else {
            name
        }
    }

    /// Whether the pod is marked to be deleted, by label or by name.
    pub(crate) fn is_specified(&self, pod: &CachedPod) -> bool {
        pod.facts().marked || (!self.to_delete.is_empty() && self.to_delete.contains(pod::name(pod)))
    }

    /// Whether the pod is held before deletion.
    pub(crate) fn is_preparing_delete(&self, pod: &CachedPod) -> bool {
        &*pod.facts().state == state::PREPARING_DELETE
    }

    /// Whether the pod is in service, and has been for `minReadySeconds`.
    pub(crate) fn is_available(&self, pod: &CachedPod) -> bool {
        is_available(pod, self.settings.min_ready_s, self.now())
    }

    /// Whether the pod is in service.
    pub(crate) fn is_ready(&self, pod: &CachedPod) -> bool {
        is_available(pod, 0, self.now())
    }

    fn counts<'p>(&self, pods: impl Iterator<Item = &'p Arc<CachedPod>>) -> Counts {
        let mut counts = Counts::default();
        for pod in pods {
            let slot = if self.is_preparing_delete(pod) {
                &mut counts.preparing_delete
            } else if self.is_specified(pod) {
                &mut counts.to_delete
            } else if self.is_available(pod) {
                &mut counts.available
            } else {
                &mut counts.unavailable
            };
            *slot += 1;
        }
        counts
    }

    /// The difference between the pods that there are and the settings, for updates.
    pub(crate) fn diff(&self) -> Diff {
        self.diff_by(|pod| self.is_updated(pod))
    }

    /// The same for scaling.
    pub(crate) fn diff_for_scaling(&self) -> Diff {
        self.diff_by(|pod| self.is_updated_for_scaling(pod))
    }

    fn diff_by(&self, updated: impl Fn(&CachedPod) -> bool) -> Diff {
        let situation = Situation {
            new: self.counts(self.pods.iter().filter(|pod| updated(pod))),
            old: self.counts(self.pods.iter().filter(|pod| !updated(pod))),
            same_revision: self.revisions.update.name == self.revisions.current.name,
            rollback: self.gates.partition_rollback,
            exclude_preparing_delete: self.gates.exclude_preparing_delete
                || self
                    .set()
                    .metadata
                    .labels
                    .as_ref()
                    .and_then(|labels| labels.get(labels::EXCLUDE_PREPARING_DELETE))
                    .is_some_and(|value| value == "true"),
        };
        diff(&self.settings, &situation)
    }
}
