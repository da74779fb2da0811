//! The reconciler: from a key to a pass.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};

use super::act::{Performer, write_status};
use super::nodes::{concerns, is_the_same};
use super::observe::Observed;
use super::plan::{Plan, Work, plan};
use super::{NAME_LABEL, UID_LABEL};
use crate::api::v1beta1::BroadcastJob;
use crate::kit::{ActError, Change, Informer, Kind, Next, ObjectKey, Owner, Reconciler, Watches};
use crate::pods::actor::Actor;
use crate::pods::members::{Members, Shown, watch_members, watch_sets};
use crate::pods::{CachedNode, CachedPod, pod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "broadcastjob-controller";

/// The caches of the reconciler, and its actor.
pub(super) struct Controller {
    pub(super) jobs: Informer<BroadcastJob>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) actor: Actor,
    /// Whether the scheduler binds pods.
    pub(super) by_scheduler: bool,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watch_sets(watches, &self.jobs, &self.actor.expectations);
        watch_members::<BroadcastJob>(watches, &self.pods, None, &self.actor.expectations);
        let jobs = self.jobs.clone();
        watches.on(&self.nodes, move |change, queue| {
            let (before, now) = match change {
                Change::Added(node) => (None, Some(node.as_ref())),
                Change::Updated(old, node) if !is_the_same(old, node) => {
                    (Some(old.as_ref()), Some(node.as_ref()))
                }
                Change::Updated(..) => return,
                Change::Deleted(node) => (Some(node.as_ref()), None),
            };
            let concerned = jobs.all().into_iter().filter(|job| concerns(job, before, now));
            concerned.for_each(|job| queue.add(ObjectKey::of(job.as_ref())));
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(job) = self.jobs.get(key) else {
            self.actor.expectations.forget_set(key);
            return Ok(Next::Event);
        };
        let members = Members {
            pods: &self.pods,
            claims: None,
            actor: &self.actor,
        };
        if let Shown::After(delay) = members.creations_and_deletions(key).await? {
            return Ok(Next::After(delay));
        }
        let observed = self.observe(job);
        match plan(&observed) {
            Plan::Rest(delay) => Ok(delay.into()),
            Plan::Remove => self.remove(&observed.job).await,
            Plan::Work(work) => self.act(observed, &work).await,
        }
    }
}

impl Controller {
    fn observe(&self, job: Arc<BroadcastJob>) -> Observed {
        let owner = Owner::of(job.as_ref());
        let mut pods = self.pods.owned_by(&owner.uid);
        pods.retain(|pod| {
            pod::label(pod, NAME_LABEL) == Some(&owner.key.name)
                && pod::label(pod, UID_LABEL) == Some(&owner.uid)
        });
        Observed {
            nodes: self.nodes.all(),
            now: self.actor.clock.now(),
            job,
            pods,
        }
    }

    /// Deletes a job that has been over for as long as it may. One of that name that is another by now stays.
    async fn remove(&self, job: &BroadcastJob) -> Result<Next, ActError> {
        let api = self.actor.api::<BroadcastJob>(&ObjectKey::of(job));
        let preconditions = Preconditions {
            uid: job.uid(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match api.delete(&job.name_any(), &params).await.map_err(ActError::from) {
            Err(error) if error.kind != Kind::NotFound => Err(error),
            _ => Ok(Next::Event),
        }
    }

    async fn act(&self, observed: Observed, work: &Work) -> Result<Next, ActError> {
        let (job, now) = (&observed.job, observed.now);
        let names = pod::names(&observed.pods);
        // Pods and nodes change while the plan is carried out: as they were they would be in memory once more.
        drop((observed.pods, observed.nodes));
        let performer = Performer {
            actor: &self.actor,
            job,
            names: &names,
            by_scheduler: self.by_scheduler,
        };
        let (done, result) = performer.perform(work).await;
        let outcome = work.outcome(job, done, now);
        performer
            .events(&Owner::of(job.as_ref()), outcome.event.as_slice())
            .await;
        if job.status.as_ref() != Some(&outcome.status) {
            write_status(&self.actor, job, &outcome.status).await?;
        }
        result?;
        match &work.failure {
            Some(failure) => Err(ActError::planned(failure)),
            None => Ok(work.requeue.into()),
        }
    }
}
