//! The reconciler: from a key to a pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{Backoff, EventType};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt as _};

use super::act::{Performer, write_status};
use super::gates::Gates;
use super::nodes::{concerns, is_empty, is_the_same, misses};
use super::observe::Observed;
use super::plan::{Plan, plan, status_alone};
use crate::api::v1beta1::DaemonSet;
use crate::api::v1beta1::ImagePullJob;
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, Watches, controller_of};
use crate::pods::actor::Actor;
use crate::pods::members::{Adopters, Members, Shown, watch_members, watch_sets};
use crate::pods::revision::HashOf;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::pods::revision_plan::{self, RevisionSource};
use crate::pods::{CachedNode, CachedPod, PodAction, Revisions, pod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "daemonset-controller";

/// How long the first pod that fails after another on its node stays …
const FAILED_DELAY_MIN: Duration = Duration::from_secs(1);
/// … and the longest that any does.
const FAILED_DELAY_MAX: Duration = Duration::from_secs(15 * 60);

/// Where pods have failed: the set's uid and observed generation, and the node.
pub(super) type Failures = Backoff<(String, i64, String)>;

/// Nowhere yet.
pub(super) fn failures() -> Failures {
    Backoff::new(FAILED_DELAY_MIN, FAILED_DELAY_MAX)
}

/// The caches of the reconciler, and the actor that acts for it.
pub(super) struct Controller {
    pub(super) sets: Informer<DaemonSet>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) revisions: RevisionKeeper,
    pub(super) jobs: Informer<ImagePullJob>,
    pub(super) failures: Mutex<Failures>,
    pub(super) actor: Actor,
    pub(super) gates: Gates,
    /// Whether the scheduler binds pods.
    pub(super) by_scheduler: bool,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watch_sets(watches, &self.sets, &self.actor.expectations);
        watch_members::<DaemonSet>(watches, &self.pods, None, &self.actor.expectations);
        watches.wait_for(self.revisions.cache());
        let sets = self.sets.clone();
        watches.on(&self.nodes, move |change, queue| {
            if matches!(change, Change::Updated(old, new) if is_the_same(old, new)) {
                return;
            }
            let concerned = sets.all().into_iter().filter(|set| match change {
                Change::Added(node) => concerns(set, None, node),
                Change::Updated(old, node) => concerns(set, Some(old), node),
                Change::Deleted(node) => misses(set, node),
            });
            concerned.for_each(|set| queue.add(ObjectKey::of(set.as_ref())));
        });
        let sets = self.sets.clone();
        watches.on(&self.pods, move |change, queue| {
            let Some(orphan) = new_orphan(change) else { return };
            let concerned = sets.all().into_iter().filter(|set| may_adopt(set, orphan));
            concerned.for_each(|set| queue.add(ObjectKey::of(set.as_ref())));
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.reconcile(key).await.map(Next::from)
    }
}

/// The pod without a controller that a change brings about, if there is one.
fn new_orphan<'c>(change: &'c Change<'_, CachedPod>) -> Option<&'c CachedPod> {
    let (before, pod) = match change {
        Change::Added(pod) => (None, pod),
        Change::Updated(old, pod) => (Some(old), pod),
        Change::Deleted(_) => return None,
    };
    let is_orphan = |pod: &CachedPod| controller_of(&pod.metadata).is_none();
    let is_known = before.is_some_and(|old| is_orphan(old) && pod::all_labels(old) == pod::all_labels(pod));
    (is_orphan(pod) && !is_known && pod.metadata.deletion_timestamp.is_none()).then_some(pod.as_ref())
}

/// Whether a set selects a pod.
fn may_adopt(set: &DaemonSet, pod: &CachedPod) -> bool {
    let selector = &set.spec.selector;
    set.namespace() == pod.namespace()
        && !is_empty(selector)
        && Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(pod::all_labels(pod)))
}

impl Controller {
    /// One pass over the set `key`. Gives the time after which to look again, if any.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, ActError> {
        let Some(set) = self.sets.get(key) else {
            self.actor.expectations.forget_set(key);
            self.revisions.forget_seen();
            return Ok(None);
        };
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let Ok(selector) = Selector::try_from(set.spec.selector.clone()) else {
            return Ok(None);
        };
        if is_empty(&set.spec.selector) {
            let message = "This DaemonSet is selecting all pods. A non-empty selector is required.";
            let owner = Owner::of(set.as_ref());
            self.actor
                .event(&owner, EventType::Warning, "SelectingAll", message.to_owned());
            return Ok(None);
        }
        let members = Members {
            pods: &self.pods,
            claims: None,
            actor: &self.actor,
        };
        let mut shown = members.creations_and_deletions(key).await?;
        if members.claim(set.as_ref(), &selector, |_| true).await? {
            // The watch shows them.
            return Ok(None);
        }
        members
            .adopt_revisions(&self.revisions, set.as_ref(), &selector, Adopters::Staying)
            .await?;
        let mut observed = self.observe(set.clone(), &selector);
        if !matches!(shown, Shown::After(_)) {
            shown = members.writes(key, &observed.pods).await?;
            if matches!(shown, Shown::Late) {
                observed = self.observe(set, &selector);
            }
        }
        let revisions = self.ensure_revisions(&observed).await?;
        let plan = match shown {
            Shown::After(delay) => Plan {
                requeue: Some(delay),
                ..status_alone(&observed, &revisions, self.gates)
            },
            Shown::All | Shown::Late => plan(&observed, &revisions, self.gates),
        };
        self.act(observed, &revisions, plan).await
    }

    fn lock_failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe(&self, set: Arc<DaemonSet>, selector: &Selector) -> Observed {
        let owner = Owner::of(set.as_ref());
        let now = self.actor.clock.now();
        let mut pods = self.pods.owned_by(&owner.uid);
        pods.retain(|pod| selector.matches(pod::all_labels(pod)));
        let failures = self.lock_failures();
        let failed = pods.iter().filter(|pod| pod::phase(pod) == "Failed");
        let held: BTreeMap<String, Duration> = failed
            .filter_map(|pod| {
                let node = pod::node_or_target(pod);
                let delay = failures.delay(&failure_key(&set, node), now)?;
                Some((node.to_owned(), delay))
            })
            .collect();
        drop(failures);
        Observed {
            nodes: self.nodes.all(),
            revisions: self.revisions.of(&owner, selector),
            jobs: self.jobs.owned_by(&owner.uid),
            set,
            pods,
            held,
            now,
        }
    }

    async fn ensure_revisions(&self, observed: &Observed) -> Result<Revisions, ActError> {
        let set = &observed.set;
        let owner = Owner::of(set.as_ref());
        let source = RevisionSource {
            owner: &owner,
            annotations: set.annotations(),
            template: &set.spec.template,
            claim_templates: None,
            hash_of: HashOf::Template,
            existing: &observed.revisions,
            current: "",
        };
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        self.revisions
            .ensure(&self.actor, &owner, false, collisions, |collisions| {
                revision_plan::plan(&source, collisions)
            })
            .await
    }

    async fn act(
        &self,
        observed: Observed,
        revisions: &Revisions,
        plan: Plan,
    ) -> Result<Option<Duration>, ActError> {
        let (set, now) = (&observed.set, observed.now);
        let names = pod::names(&observed.pods);
        // Pods and nodes change while the plan is carried out: as they were they would be in memory once more.
        drop((observed.pods, observed.nodes));
        for node in &plan.failed {
            self.lock_failures().note(failure_key(set, node), now);
        }
        let performer = Performer {
            actor: &self.actor,
            set,
            revisions,
            names: &names,
            by_scheduler: self.by_scheduler,
        };
        performer.perform(&plan.actions).await?;
        for name in plan.history {
            let action = PodAction::DeleteRevision { name };
            self.actor.perform(&Owner::of(set.as_ref()), &action).await?;
        }
        if set.status.as_ref() != Some(&plan.status) {
            write_status(&self.actor, set, &plan.status).await?;
        }
        Ok(plan.requeue)
    }
}

fn failure_key(set: &DaemonSet, node: &str) -> (String, i64, String) {
    let seen = set.status.as_ref().map_or(0, |status| status.observed_generation);
    (set.uid().unwrap_or_default(), seen, node.to_owned())
}
