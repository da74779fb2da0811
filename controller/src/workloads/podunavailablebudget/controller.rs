//! The reconciler: from a budget to its status and its pods' annotations.

use std::sync::Arc;

use client_kit::{EventRecorder, EventType, Seed, SharedClock};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet as AppsStatefulSet};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::observe::{Finder, Observed};
use super::plan::{self, desired, next, unrelated};
use super::wake::{pod_changed, workload_changed};
use crate::api::labels;
use crate::api::v1alpha1::{CloneSet, PodUnavailableBudget};
use crate::api::v1beta1::StatefulSet;
use crate::injection::budgets::{Desk, subject};
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, Watches, Written};
use crate::pods::pod::{self, Pod};
use crate::pods::{CachedPod, PodRef};
use crate::targets::{Lookup, Scaled};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "podunavailablebudget-controller";

/// The reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) recorder: EventRecorder,
    pub(super) budgets: Informer<PodUnavailableBudget>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) deployments: Informer<Scaled<Deployment>>,
    pub(super) stateful_sets: Informer<Scaled<AppsStatefulSet>>,
    pub(super) clone_sets: Informer<CloneSet>,
    pub(super) advanced_stateful_sets: Informer<StatefulSet>,
    pub(super) lookup: Lookup,
    pub(super) desk: Arc<Desk>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.budgets, |change, queue| {
            let (Change::Added(budget) | Change::Updated(_, budget) | Change::Deleted(budget)) = change;
            queue.add(ObjectKey::of(budget.as_ref()));
        });
        let budgets = || self.budgets.clone();
        let known = budgets();
        watches.on(&self.pods, move |change, queue| {
            pod_changed(&known, change, queue)
        });
        let known = budgets();
        watches.on(&self.deployments, move |change, queue| {
            workload_changed(&known, change, queue)
        });
        let known = budgets();
        watches.on(&self.stateful_sets, move |change, queue| {
            workload_changed(&known, change, queue)
        });
        let known = budgets();
        watches.on(&self.clone_sets, move |change, queue| {
            workload_changed(&known, change, queue)
        });
        let known = budgets();
        watches.on(&self.advanced_stateful_sets, move |change, queue| {
            workload_changed(&known, change, queue);
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(budget) = self.budgets.get(key) else {
            self.forget_missing();
            return Ok(Next::Event);
        };
        if budget.metadata.deletion_timestamp.is_some() {
            self.desk.writes.forget(&budget.uid().unwrap_or_default());
            return Ok(Next::Event);
        }
        let finder = Finder {
            pods: &self.pods,
            lookup: &self.lookup,
        };
        let observed = finder.find(&budget, self.clock.now()).await?;
        let owner = Owner::of(budget.as_ref());
        if observed.pods.is_empty() {
            let message = "No matching pods found".to_owned();
            self.recorder
                .event(&owner.subject(), EventType::Normal, "NoPods", message);
        }
        for pod in unrelated(&observed) {
            self.relate(key, &pod).await?;
        }
        let desired = desired(&budget.spec, observed.total).map_err(|error| {
            let message = format!("Failed to calculate the number of expected pods: {error}");
            let reason = "CalculateExpectedPodCountFailed";
            self.recorder
                .event(&owner.subject(), EventType::Warning, reason, message);
            ActError::planned(&error.to_string())
        })?;
        self.write(&budget, &observed, desired).await
    }
}

impl Controller {
    /// Forgets the versions of budgets that are gone.
    fn forget_missing(&self) {
        let is_there = |budget: &PodUnavailableBudget| self.budgets.get(&ObjectKey::of(budget)).is_some();
        self.desk.writes.forget_missing(is_there);
    }

    /// Names the budget in a pod's annotations.
    async fn relate(&self, budget: &ObjectKey, pod: &PodRef) -> Result<(), ActError> {
        let annotations = json!({ labels::RELATED_BUDGET: budget.name });
        let patch = json!({ "metadata": { "uid": pod.uid, "annotations": annotations } });
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &budget.namespace);
        api.patch(&pod.name, &PatchParams::default(), &Patch::Strategic(&patch))
            .await?;
        Ok(())
    }

    /// Writes the status, if it changes, and tells of pods that were not deleted.
    async fn write(
        &self,
        budget: &PodUnavailableBudget,
        observed: &Observed,
        desired: i32,
    ) -> Result<Next, ActError> {
        let namespace = budget.namespace().unwrap_or_default();
        let api = Api::namespaced(self.client.clone(), &namespace);
        let decide = |mut current: PodUnavailableBudget| {
            let next = next(&current, observed, desired);
            let changes = current.status.as_ref() != Some(&next.status);
            current.status = Some(next.status.clone());
            std::future::ready(Ok::<_, ActError>((changes.then_some(current), next)))
        };
        let seed = Seed(0).fork(&budget.uid().unwrap_or_default());
        let written = self.desk.writes.write(&api, budget, seed, decide).await?;
        let Written::Decided(plan::Next {
            not_deleted, requeue, ..
        }) = written
        else {
            return Ok(Next::Event);
        };
        for name in not_deleted {
            if let Some(pod) = observed.pods.iter().find(|pod| pod::name(pod) == name) {
                let message = format!(
                    "Pod was expected by PUB {namespace}/{} to be deleted but it wasn't",
                    budget.name_any()
                );
                self.recorder
                    .event(&subject(pod), EventType::Warning, "NotDeleted", message);
            }
        }
        Ok(requeue.into())
    }
}
