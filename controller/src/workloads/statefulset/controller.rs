//! The reconciler: from a key to a pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::core::{Selector, SelectorExt};
use kube::{Resource as _, ResourceExt};

use super::act::{Performer, write_status};
use super::gates::Gates;
use super::observe::Observed;
use super::ordinals::{ordinal_of, own_ordinals};
use super::plan::{Plan, add_failure, differs, plan};
use crate::api::labels;
use crate::api::v1beta1::ImagePullJob;
use crate::api::v1beta1::StatefulSet;
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, Watches};
use crate::pods::actor::{Actor, KnownClaims};
use crate::pods::build::claim_name;
use crate::pods::members::{Adopters, Members, Shown, owner_key, watch_members, watch_sets};
use crate::pods::revision::HashOf;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::pods::revision_plan::{self, RevisionSource};
use crate::pods::{CachedPod, PodAction, Revisions, pod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "statefulset-controller";

/// The caches of the reconciler, and the actor that acts for it.
pub(super) struct Controller {
    pub(super) sets: Informer<StatefulSet>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) revisions: RevisionKeeper,
    pub(super) jobs: Informer<ImagePullJob>,
    pub(super) actor: Actor,
    pub(super) gates: Gates,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watch_sets(watches, &self.sets, &self.actor.expectations);
        watch_members::<StatefulSet>(watches, &self.pods, Some(&self.claims), &self.actor.expectations);
        watches.wait_for(self.revisions.cache());
        let pods = self.pods.clone();
        watches.on(&self.claims, move |change, queue| match change {
            Change::Added(_) => {}
            // A claim that grows has no owner to wake.
            Change::Updated(_, claim) => {
                if let Some(set) = claim.annotations().get(labels::OWNED_BY_STATEFUL_SET) {
                    let namespace = claim.namespace().unwrap_or_default();
                    queue.add(ObjectKey::new(&namespace, set));
                }
            }
            // OpenKruise waits for the next change of the pod that lacks the claim, which may have come before.
            Change::Deleted(claim) => {
                let namespace = claim.namespace().unwrap_or_default();
                let name = claim.name_any();
                let found = pods_of_claim(&name).find_map(|pod| pods.get(&ObjectKey::new(&namespace, pod)));
                if let Some(set) = found.and_then(|pod| owner_key::<StatefulSet>(pod.meta())) {
                    queue.add(set);
                }
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.reconcile(key).await.map(Next::from)
    }
}

/// The pods that a claim may be of, by name: a claim is named after its template and its pod.
fn pods_of_claim(claim: &str) -> impl Iterator<Item = &str> {
    claim.match_indices('-').filter_map(|(at, _)| claim.get(at + 1..))
}

impl Controller {
    /// One pass over the set `key`. Gives the time after which to look again, if any.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, ActError> {
        let Some(set) = self.sets.get(key) else {
            self.actor.expectations.forget_set(key);
            self.revisions.forget_seen();
            return Ok(None);
        };
        let Ok(selector) = Selector::try_from(set.spec.selector.clone()) else {
            return Ok(None);
        };
        if let Shown::After(delay) = self.members().creations_and_deletions(key).await? {
            return Ok(Some(delay));
        }
        self.members()
            .adopt_revisions(&self.revisions, set.as_ref(), &selector, Adopters::All)
            .await?;
        let has_ordinal = |pod: &CachedPod| ordinal_of(&key.name, pod::name(pod)).is_some();
        if self.members().claim(set.as_ref(), &selector, has_ordinal).await? {
            // The watch shows them.
            return Ok(None);
        }
        let mut observed = self.observe(set.clone(), &selector);
        let pods: Vec<Arc<CachedPod>> = observed.pods.values().cloned().collect();
        match self.members().writes(key, &pods).await? {
            Shown::All => {}
            Shown::After(delay) => return Ok(Some(delay)),
            Shown::Late => observed = self.observe(set, &selector),
        }
        let revisions = self.ensure_revisions(&observed).await?;
        let plan = plan(&observed, &revisions, self.gates);
        self.act(observed, &revisions, plan).await
    }

    fn members(&self) -> Members<'_> {
        Members {
            pods: &self.pods,
            claims: Some(&self.claims),
            actor: &self.actor,
        }
    }

    fn observe(&self, set: Arc<StatefulSet>, selector: &Selector) -> Observed {
        let owner = Owner::of(set.as_ref());
        let mut pods = BTreeMap::new();
        for pod in self.pods.owned_by(&owner.uid) {
            let ordinal = ordinal_of(&owner.key.name, pod::name(&pod));
            if let Some(ordinal) = ordinal.filter(|_| selector.matches(pod::all_labels(&pod))) {
                pods.insert(ordinal, pod);
            }
        }
        let revisions = self.revisions.of(&owner, selector);
        let claims = self.claims_of(&owner, &set, &pods);
        Observed {
            set,
            pods,
            claims,
            revisions,
            jobs: self.jobs.owned_by(&owner.uid),
            now: self.actor.clock.now(),
        }
    }

    /// The claims of every ordinal that the set has or that a pod has.
    fn claims_of(
        &self,
        owner: &Owner,
        set: &StatefulSet,
        pods: &BTreeMap<i32, Arc<CachedPod>>,
    ) -> BTreeMap<String, Arc<PersistentVolumeClaim>> {
        let templates = set.spec.claim_templates();
        let mut claims = BTreeMap::new();
        if templates.is_empty() {
            return claims;
        }
        let own = own_ordinals(set, self.gates);
        for ordinal in own.iter().chain(pods.keys()) {
            for template in templates {
                let name = claim_name(owner, template, &ordinal.to_string());
                let claim = self.claims.get(&ObjectKey::new(&owner.key.namespace, &name));
                claims.extend(claim.map(|claim| (name, claim)));
            }
        }
        claims
    }

    async fn ensure_revisions(&self, observed: &Observed) -> Result<Revisions, ActError> {
        let set = &observed.set;
        let status = set.status.as_ref();
        let owner = Owner::of(set.as_ref());
        let source = RevisionSource {
            owner: &owner,
            annotations: set.annotations(),
            template: &set.spec.template,
            claim_templates: None,
            hash_of: HashOf::Data,
            existing: &observed.revisions,
            current: status.map_or("", |status| &status.current_revision),
        };
        self.revisions
            .ensure(
                &self.actor,
                &owner,
                set.metadata.deletion_timestamp.is_some(),
                status.and_then(|status| status.collision_count),
                |collisions| revision_plan::plan(&source, collisions),
            )
            .await
    }

    async fn act(
        &self,
        observed: Observed,
        revisions: &Revisions,
        plan: Plan,
    ) -> Result<Option<Duration>, ActError> {
        let (set, claims, now) = (&observed.set, &observed.claims, observed.now);
        // The pods change while the plan is carried out: as they were they would be in memory once more.
        drop(observed.pods);
        let existing: Vec<String> = claims.keys().cloned().collect();
        let ends = |claim: &PersistentVolumeClaim| claim.metadata.deletion_timestamp.is_some();
        let ending = claims.iter().filter(|(_, claim)| ends(claim));
        let ending: Vec<String> = ending.map(|(name, _)| name.clone()).collect();
        let performer = Performer {
            actor: &self.actor,
            set,
            revisions,
            gates: self.gates,
            claims: KnownClaims {
                existing: &existing,
                ending: &ending,
            },
        };
        let old = set.status.clone().unwrap_or_default();
        let mut status = plan.status;
        let mut result = Ok(());
        for action in &plan.actions {
            if let Err((error, condition)) = performer.perform(action).await {
                if let Some(kind) = condition {
                    add_failure(&mut status, &old, kind, &error.message, now);
                }
                result = Err(error);
                break;
            }
        }
        if set.status.is_none() || differs(&status, &old) {
            write_status(&self.actor, set, &status).await?;
        }
        for name in plan.history {
            let action = PodAction::DeleteRevision { name };
            let deleted = self.actor.perform(&Owner::of(set.as_ref()), &action).await;
            if let Err(error) = deleted {
                tracing::warn!(set = set.name_any(), %error, "failed to delete an old revision");
            }
        }
        result.map(|()| plan.requeue)
    }
}

#[cfg(test)]
mod tests {
    use super::pods_of_claim;

    #[test]
    fn a_claim_names_its_pod() {
        let names: Vec<&str> = pods_of_claim("data-dir-web-0").collect();
        assert_eq!(names, ["dir-web-0", "web-0", "0"]);
        assert_eq!(pods_of_claim("é-").collect::<Vec<_>>(), [""]);
        assert_eq!(pods_of_claim("none").count(), 0);
    }
}
