//! The reconciler: from a key to a pass.

use std::sync::Arc;
use std::time::Duration;

use client_kit::EventType;
use kube::core::Selector;

use super::act::{Performer, member};
use super::finder::Finder;
use super::kinds::ChildKind;
use super::observe::Observed;
use super::plan::{plan, plan_revisions};
use super::wake::matters;
use crate::api::v1alpha1::UnitedDeployment;
use crate::kit::expectations::{EXPECTATION_TIMEOUT, Expected, Member, Visible};
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, Watches};
use crate::pods::Revisions;
use crate::pods::actor::Actor;
use crate::pods::members::{Adopters, Members, watch_owned, watch_sets};
use crate::pods::revision_keeper::RevisionKeeper;

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "uniteddeployment-controller";

/// The caches of the reconciler, and its actor.
pub(super) struct Controller {
    pub(super) sets: Informer<UnitedDeployment>,
    pub(super) finder: Arc<Finder>,
    pub(super) revisions: RevisionKeeper,
    pub(super) actor: Actor,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let expectations = &self.actor.expectations;
        watch_sets(watches, &self.sets, expectations);
        watch_owned::<UnitedDeployment, _>(
            watches,
            &self.finder.stateful_sets,
            |name| member(ChildKind::StatefulSet, name),
            expectations,
        );
        watch_owned::<UnitedDeployment, _>(
            watches,
            &self.finder.advanced,
            |name| member(ChildKind::AdvancedStatefulSet, name),
            expectations,
        );
        watch_owned::<UnitedDeployment, _>(
            watches,
            &self.finder.clone_sets,
            |name| member(ChildKind::CloneSet, name),
            expectations,
        );
        watch_owned::<UnitedDeployment, _>(
            watches,
            &self.finder.deployments,
            |name| member(ChildKind::Deployment, name),
            expectations,
        );
        watches.wait_for(&self.finder.replica_sets);
        watches.wait_for(self.revisions.cache());
        let finder = Arc::clone(&self.finder);
        watches.on(&self.finder.pods, move |change, queue| {
            let (Change::Added(pod) | Change::Updated(_, pod) | Change::Deleted(pod)) = change;
            if matters(change)
                && let Some(key) = finder.set_of(pod)
            {
                queue.add(key);
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.reconcile(key).await.map(Next::from)
    }
}

impl Controller {
    /// One pass over the UnitedDeployment `key`. Gives the time after which to look again, if any.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, ActError> {
        let Some(set) = self.sets.get(key) else {
            self.actor.expectations.forget_set(key);
            self.revisions.forget_seen();
            return Ok(None);
        };
        let kind = ChildKind::of(&set.spec.template);
        let (Some(kind), None) = (kind, &set.metadata.deletion_timestamp) else {
            return Ok(None);
        };
        let Ok(selector) = Selector::try_from(set.spec.selector.clone()) else {
            return Ok(None);
        };
        if let Some(delay) = self.unseen(key, &set).await? {
            return Ok(Some(delay));
        }
        let performer = Performer {
            actor: &self.actor,
            set: &set,
            owner: Owner::of(set.as_ref()),
            kind,
        };
        if self.adopt(&performer, &selector).await? {
            // The watch shows them.
            return Ok(None);
        }
        let observed = self.observe(&performer, Arc::clone(&set), &selector);
        if let Some(delay) = self.unseen_versions(&observed) {
            return Ok(Some(delay));
        }
        self.members()
            .adopt_revisions(&self.revisions, set.as_ref(), &selector, Adopters::Staying)
            .await?;
        let revisions = self.ensure_revisions(&observed, &performer.owner).await?;
        let plan = plan(&observed, &revisions);
        performer.perform(&plan).await?;
        Ok(plan.requeue)
    }

    fn members(&self) -> Members<'_> {
        Members {
            pods: &self.finder.pods,
            claims: None,
            actor: &self.actor,
        }
    }

    /// Looks whether the caches show all that was made and deleted. Gives how long that may still take, if they do not. The
    /// server is asked about members that are in doubt, or were not seen in time.
    async fn unseen(&self, key: &ObjectKey, set: &UnitedDeployment) -> Result<Option<Duration>, ActError> {
        let expectations = &self.actor.expectations;
        let open = match expectations.of_set(key) {
            Visible::Yes => Vec::new(),
            Visible::NotFor(age) if age < EXPECTATION_TIMEOUT => return Ok(Some(EXPECTATION_TIMEOUT - age)),
            Visible::NotFor(_) => expectations.open(key),
            Visible::Doubtful => expectations.doubtful(key),
        };
        for (expected, member) in open {
            self.ask(key, expected, &member).await?;
            expectations.settle(key, expected, member);
        }
        Ok(expectations.unseen_object(set))
    }

    async fn ask(&self, key: &ObjectKey, expected: Expected, member: &Member) -> Result<(), ActError> {
        let Member::Workload(word, name) = member else {
            return Ok(());
        };
        let (members, finder) = (self.members(), &self.finder);
        match ChildKind::ALL.into_iter().find(|kind| kind.word() == *word) {
            Some(ChildKind::StatefulSet) => members.learn(&finder.stateful_sets, key, expected, name).await,
            Some(ChildKind::AdvancedStatefulSet) => {
                members.learn(&finder.advanced, key, expected, name).await
            }
            Some(ChildKind::CloneSet) => members.learn(&finder.clone_sets, key, expected, name).await,
            Some(ChildKind::Deployment) => members.learn(&finder.deployments, key, expected, name).await,
            None => Ok(()),
        }
    }

    fn unseen_versions(&self, observed: &Observed) -> Option<Duration> {
        let children = observed.children.iter().chain(&observed.others);
        children
            .filter_map(|child| self.actor.expectations.unseen(&child.uid, &child.version))
            .min()
    }

    /// Makes workloads without an owner the UnitedDeployment's. Whether there was one.
    async fn adopt(&self, performer: &Performer<'_>, selector: &Selector) -> Result<bool, ActError> {
        let orphans = self.finder.orphans(&performer.owner, selector, performer.kind);
        if orphans.is_empty() {
            return Ok(false);
        }
        self.members()
            .confirm::<UnitedDeployment>(&performer.owner, Adopters::Staying)
            .await?;
        for orphan in &orphans {
            match performer.adopt(orphan).await {
                Err(error) if error.is_about_another() => {}
                adopted => adopted?,
            }
        }
        Ok(true)
    }

    fn observe(
        &self,
        performer: &Performer<'_>,
        set: Arc<UnitedDeployment>,
        selector: &Selector,
    ) -> Observed {
        let (owner, kind) = (&performer.owner, performer.kind);
        let others = ChildKind::ALL.into_iter().filter(|other| *other != kind);
        Observed {
            kind,
            children: self.finder.owned(owner, selector, kind),
            others: others
                .flat_map(|other| self.finder.owned(owner, selector, other))
                .collect(),
            revisions: self.revisions.of(owner, selector),
            now: self.actor.clock.now(),
            set,
        }
    }

    async fn ensure_revisions(&self, observed: &Observed, owner: &Owner) -> Result<Revisions, ActError> {
        let collisions = observed.set.status.as_ref();
        let collisions = collisions.and_then(|status| status.collision_count);
        let revisions = self
            .revisions
            .ensure(&self.actor, owner, false, collisions, |collisions| {
                plan_revisions(observed, collisions)
            });
        revisions.await.inspect_err(|error| {
            let reason = "FailedRevisionProvision";
            self.actor
                .event(owner, EventType::Warning, reason, error.message.clone());
        })
    }
}
