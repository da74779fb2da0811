//! The revisions of owners: those that the watch has shown, and those that were written and are not shown yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::apps::v1::ControllerRevision;
use kruise_kit::{ActError, Informer, ObjectKey, Owner};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::Revisions;
use super::actor::{Actor, Written};
use super::revision_plan::RevisionPlan;

/// How often a revision's name may be taken in one pass.
const COLLISIONS_MAX: u32 = 10;

/// The revisions of owners.
pub struct RevisionKeeper {
    cache: Informer<ControllerRevision>,
    written: Mutex<BTreeMap<ObjectKey, ControllerRevision>>,
}

impl RevisionKeeper {
    /// A keeper that reads `cache`.
    pub fn new(cache: Informer<ControllerRevision>) -> Self {
        Self {
            cache,
            written: Mutex::default(),
        }
    }

    /// The cache.
    pub fn cache(&self) -> &Informer<ControllerRevision> {
        &self.cache
    }

    /// The revisions of an owner, with those without an owner that its selector selects.
    pub fn of(&self, owner: &Owner, selector: &Selector) -> Vec<Arc<ControllerRevision>> {
        let mut revisions = self.cache.owned_by(&owner.uid);
        revisions.extend(self.orphans(owner, selector));
        self.add_written(&mut revisions, &owner.uid);
        revisions
    }

    /// The revisions without an owner that an owner's selector selects.
    pub fn orphans(&self, owner: &Owner, selector: &Selector) -> Vec<Arc<ControllerRevision>> {
        let mut orphans = self.cache.orphans(&owner.key.namespace);
        orphans.retain(|revision| selector.matches(revision.labels()));
        orphans
    }

    /// Adds the written revisions that are not in the cache yet, and forgets those that have arrived.
    fn add_written(&self, revisions: &mut Vec<Arc<ControllerRevision>>, uid: &str) {
        self.lock_written().retain(|_, own| {
            if !own.owner_references().iter().any(|owner| owner.uid == uid) {
                return true;
            }
            match revisions
                .iter_mut()
                .find(|seen| seen.name_any() == own.name_any())
            {
                Some(seen) if seen.revision >= own.revision => return false,
                Some(seen) => *seen = Arc::new(own.clone()),
                None => revisions.push(Arc::new(own.clone())),
            }
            true
        });
    }

    /// Forgets the written revisions of an owner that is gone, once the watch has shown them.
    pub fn forget_seen(&self) {
        self.lock_written()
            .retain(|revision, _| self.cache.get(revision).is_none());
    }

    fn lock_written(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, ControllerRevision>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revisions of a pass, by `plan`, which is given how often a name was taken. Writes the action of the plan, unless the
    /// owner is being deleted.
    ///
    /// # Errors
    /// Those of the plan and of the requests.
    pub async fn ensure(
        &self,
        actor: &Actor,
        owner: &Owner,
        is_deleted: bool,
        collisions: Option<i32>,
        plan: impl Fn(i32) -> Result<RevisionPlan, String>,
    ) -> Result<Revisions, ActError> {
        let mut collisions = collisions.unwrap_or(0);
        for _ in 0..COLLISIONS_MAX {
            let plan = plan(collisions).map_err(|message| ActError::planned(&message))?;
            let Some(action) = plan.action.filter(|_| !is_deleted) else {
                return Ok(plan.revisions);
            };
            match actor.write_revision(owner, &action).await? {
                Written::Done(revision) => {
                    self.lock_written()
                        .insert(ObjectKey::of(revision.as_ref()), *revision);
                    return Ok(plan.revisions);
                }
                Written::Collision => collisions = collisions.saturating_add(1),
            }
        }
        Err(ActError::planned("every name of the revision is taken"))
    }
}
