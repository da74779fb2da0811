//! The reconciler: from a key to a pass.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::act::{label_revision, perform, write_status};
use super::observe::Observed;
use super::plan::{Action, Plan, differs, plan, revisions};
use super::sidecars::{Sidecars, injected};
use super::wake;
use crate::api::labels;
use crate::api::v1beta1::SidecarSet;
use crate::injection::sidecars::selection::{selects, selects_namespace};
use crate::kit::{ActError, Change, Desk, Informer, Next, ObjectKey, Owner, Reconciler, Watches, WorkQueue};
use crate::pods::actor::Actor;
use crate::pods::members::{self, Shown};
use crate::pods::revision_keeper::RevisionKeeper;
use crate::pods::{CachedPod, PodAction, Revisions, pod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "sidecarset-controller";
/// How long a pass waits for writes to pods that the watch has not shown yet.
const UNSEEN_RETRY: Duration = Duration::from_secs(1);

/// The caches of the reconciler, and its actor.
pub(super) struct Controller {
    pub(super) sets: Informer<SidecarSet>,
    /// The sets as this process wrote them.
    pub(super) desk: Desk<SidecarSet>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) namespaces: Informer<Namespace>,
    pub(super) revisions: RevisionKeeper,
    pub(super) actor: Actor,
    /// The namespace of the revisions: the manager's own.
    pub(super) namespace: String,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.sets, |change, queue| match change {
            Change::Added(set) | Change::Deleted(set) => queue.add(ObjectKey::of(set.as_ref())),
            Change::Updated(old, new) if old.metadata.generation != new.metadata.generation => {
                queue.add(ObjectKey::of(new.as_ref()));
            }
            Change::Updated(..) => {}
        });
        let sets = self.sets.clone();
        let expectations = Arc::clone(&self.actor.expectations);
        watches.on(&self.pods, move |change, queue| {
            if let Change::Deleted(pod) = change {
                expectations.forget_version(pod::uid(pod));
            }
            pod_changed(change, &sets, queue);
        });
        watches.wait_for(&self.namespaces);
        watches.wait_for(self.revisions.cache());
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.reconcile(key).await.map(Next::from)
    }
}

/// A pod changed: has those sets looked at that the change concerns.
fn pod_changed(change: &Change<'_, CachedPod>, sets: &Informer<SidecarSet>, queue: &WorkQueue<ObjectKey>) {
    let (old, new) = match change {
        Change::Added(pod) => (None, pod),
        Change::Updated(old, pod) => (Some(old), pod),
        // The beginning of the deletion was the last that counts.
        Change::Deleted(_) => return,
    };
    for name in injected(new) {
        let key = ObjectKey::new("", name);
        let Some(set) = sets.get(&key).filter(|set| Sidecars::of(set).are_in(new)) else {
            continue;
        };
        match old.map(|old| wake::after(&set, old, new)) {
            None | Some(Some(Duration::ZERO)) => queue.add(key),
            Some(Some(delay)) => queue.add_surely_after(key, delay),
            Some(None) => {}
        }
    }
}

impl Controller {
    /// One pass over the set `key`. Gives the time after which to look again, if any.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, ActError> {
        let Some(set) = self.sets.get(key) else {
            self.revisions.forget_seen();
            self.desk
                .forget_missing(|set| self.sets.get(&ObjectKey::of(set)).is_some());
            return Ok(None);
        };
        let set = Arc::new(self.desk.newest(&set));
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let owner = Owner::of(set.as_ref());
        let keeper = owner.in_namespace(&self.namespace);
        let observed = self.observe(set, &keeper)?;
        let revisions = self.ensure_revisions(&observed, &keeper).await?;
        let plan = plan(&observed, &revisions);
        self.act(observed, (&owner, &keeper), &revisions, plan).await
    }

    fn observe(&self, set: Arc<SidecarSet>, keeper: &Owner) -> Result<Observed, ActError> {
        let of_set = LabelSelector {
            match_labels: Some([(labels::SIDECARS_NAME.to_owned(), set.name_any())].into()),
            ..LabelSelector::default()
        };
        let of_set = Selector::try_from(of_set).map_err(|error| ActError::planned(&error.to_string()))?;
        let mut revisions = self.revisions.of(keeper, &of_set);
        revisions.retain(|revision| of_set.matches(revision.labels()));
        Ok(Observed {
            pods: self
                .matching(&set)
                .map_err(|message| ActError::planned(&message))?,
            set,
            revisions,
            now: self.actor.clock.now(),
        })
    }

    /// The pods that have the set's containers.
    fn matching(&self, set: &SidecarSet) -> Result<Vec<Arc<CachedPod>>, String> {
        let Some(selector) = &set.spec.selector else {
            return Ok(Vec::new());
        };
        let sidecars = Sidecars::of(set);
        let mut matching = Vec::new();
        for pod in self.pods.all() {
            if !pod.facts().active || !sidecars.has(&pod) || !selects(selector, pod::all_labels(&pod))? {
                continue;
            }
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let namespace = self.namespaces.get(&ObjectKey::new("", namespace));
            if selects_namespace(set, namespace.as_ref().map(|namespace| namespace.labels()))? {
                matching.push(pod);
            }
        }
        Ok(matching)
    }

    async fn ensure_revisions(&self, observed: &Observed, keeper: &Owner) -> Result<Revisions, ActError> {
        let status = observed.set.status.as_ref();
        self.revisions
            .ensure(
                &self.actor,
                keeper,
                false,
                status.and_then(|status| status.collision_count),
                |collisions| Ok(revisions::plan(observed, keeper, collisions)),
            )
            .await
    }

    async fn act(
        &self,
        observed: Observed,
        (owner, keeper): (&Owner, &Owner),
        revisions: &Revisions,
        plan: Plan,
    ) -> Result<Option<Duration>, ActError> {
        let set = &observed.set;
        if let Some(version) = &plan.label {
            label_revision(&self.actor, keeper, &revisions.update.name, version).await?;
        }
        for name in plan.history {
            let deleted = self
                .actor
                .perform(keeper, &PodAction::DeleteRevision { name })
                .await;
            if let Err(error) = deleted {
                tracing::warn!(set = set.name_any(), %error, "failed to delete an old revision");
            }
        }
        let old = set.status.clone().unwrap_or_default();
        if set.status.is_none() || differs(&plan.status, &old) {
            self.desk
                .keep(write_status(&self.actor, set, &plan.status).await?);
        }
        match members::writes(&self.pods, &self.actor, &observed.pods).await? {
            Shown::All => {}
            Shown::After(_) | Shown::Late => return Ok(Some(UNSEEN_RETRY)),
        }
        // A watch that begins anew after the containers have changed shows no pod between two images, and so nothing to wait for.
        let changes = plan.actions.iter().any(Action::changes_images);
        // The pods change while the plan is carried out: as they were they would be in memory once more, and patches beside them.
        drop(observed.pods);
        for action in plan.actions {
            perform(&self.actor, owner, &action).await?;
        }
        Ok(changes.then_some(wake::AFTER_IMAGES))
    }
}
