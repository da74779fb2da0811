//! The reconciler: from a key to a pass.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};

use super::act::Performer;
use super::observe::Observed;
use super::plan::plan;
use crate::api::v1alpha1::EphemeralJob;
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches};
use crate::pods::actor::Actor;
use crate::pods::members::{Shown, writes};
use crate::pods::{CachedPod, pod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "ephemeraljob-controller";

/// The caches of the reconciler, and its actor.
pub(super) struct Controller {
    pub(super) jobs: Informer<EphemeralJob>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) actor: Actor,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.jobs, |change, queue| {
            let (Change::Added(job) | Change::Updated(_, job) | Change::Deleted(job)) = change;
            queue.add(ObjectKey::of(job.as_ref()));
        });
        let jobs = self.jobs.clone();
        let expectations = Arc::clone(&self.actor.expectations);
        watches.on(&self.pods, move |change, queue| {
            let pods = match change {
                Change::Added(pod) => [Some(pod), None],
                Change::Deleted(pod) => {
                    expectations.forget_version(pod::uid(pod));
                    [Some(pod), None]
                }
                Change::Updated(old, new) if is_the_same(old, new) => return,
                Change::Updated(old, new) => [Some(old), Some(new)],
            };
            let pods: Vec<&Arc<CachedPod>> = pods.into_iter().flatten().copied().collect();
            for job in jobs.all() {
                if pods.iter().any(|pod| selects(&job, pod)) {
                    queue.add(ObjectKey::of(job.as_ref()));
                }
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(job) = self.jobs.get(key) else {
            return Ok(Next::Event);
        };
        let mut observed = self.observe(job);
        match writes(&self.pods, &self.actor, &observed.pods).await? {
            Shown::All => {}
            Shown::After(delay) => return Ok(Next::After(delay)),
            Shown::Late => observed = self.observe(observed.job),
        }
        let performer = Performer {
            actor: &self.actor,
            job: &observed.job,
        };
        performer.perform(plan(&observed)).await
    }
}

impl Controller {
    fn observe(&self, job: Arc<EphemeralJob>) -> Observed {
        let mut pods = self.pods.all();
        pods.retain(|pod| selects(&job, pod));
        Observed {
            pods,
            now: self.actor.clock.now(),
            job,
        }
    }
}

/// Whether a job selects a pod. An empty selector selects none.
fn selects(job: &EphemeralJob, pod: &CachedPod) -> bool {
    let selector = &job.spec.selector;
    let is_empty = selector.match_labels.iter().flatten().next().is_none()
        && selector.match_expressions.iter().flatten().next().is_none();
    !is_empty
        && job.namespace() == pod.namespace()
        && Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(pod::all_labels(pod)))
}

/// Whether two versions of a pod are alike in all that a job asks of one.
fn is_the_same(one: &CachedPod, other: &CachedPod) -> bool {
    pod::is_active(one) == pod::is_active(other)
        && pod::all_labels(one) == pod::all_labels(other)
        && one.spec.ephemeral_containers == other.spec.ephemeral_containers
        && one.status.ephemeral_container_statuses == other.status.ephemeral_container_statuses
}
