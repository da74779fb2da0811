//! The reconciler: from a key to a pass.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::core::Selector;
use serde_json::Value;

use super::act::{Failed, perform, write_status};
use super::observe::Observed;
use super::plan::revisions as plan_revisions;
use super::plan::status::{FAILED_SCALE, FAILED_UPDATE, add_failure, differs};
use super::plan::{Action, Phase, Plan, Planner};
use crate::api::v1alpha1::{CloneSet, CloneSetStatus};
use crate::api::v1beta1::ImagePullJob;
use crate::kit::{ActError, Informer, Kind, Next, ObjectKey, Owner, Reconciler, Watches};
use crate::metrics::Metrics;
use crate::pods::actor::Actor;
use crate::pods::members::{Members, Shown, watch_members, watch_sets};
use crate::pods::pod;
use crate::pods::refresh::shortest;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::pods::{CachedPod, Revisions};

/// How long after a pod was kept in service the set is looked at again (OpenKruise: the same).
const WITHHELD_DELAY: Duration = Duration::from_secs(1);

/// The controller's name in events, metrics and logs.
pub(crate) const CONTROLLER: &str = "cloneset-controller";

/// The caches that a reconciler reads, and the parts that it asks.
pub(crate) struct Controller {
    pub(crate) sets: Informer<CloneSet>,
    pub(crate) pods: Informer<CachedPod>,
    pub(crate) claims: Informer<PersistentVolumeClaim>,
    pub(crate) revisions: RevisionKeeper,
    pub(crate) jobs: Informer<ImagePullJob>,
    pub(crate) actor: Actor,
    pub(crate) planner: Arc<dyn Planner>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watch_sets(watches, &self.sets, &self.actor.expectations);
        watch_members::<CloneSet>(watches, &self.pods, Some(&self.claims), &self.actor.expectations);
        watches.wait_for(self.revisions.cache());
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.reconcile(key).await.map(Next::from)
    }
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
        match self.members().creations_and_deletions(key).await? {
            Shown::All => {}
            Shown::After(delay) => return Ok(Some(delay)),
            Shown::Late => {
                let labels = [("namespace", key.namespace.as_str()), ("name", key.name.as_str())];
                self.metrics
                    .add("cloneset_scale_expectation_leakage", &labels, 1.0);
            }
        }
        let mut observed = self.observe(set.clone(), &selector);
        match self.members().writes(key, &observed.pods).await? {
            Shown::All => {}
            Shown::After(delay) => return Ok(Some(delay)),
            Shown::Late => observed = self.observe(set, &selector),
        }
        observed.nodes = self.node_labels(&observed).await?;
        let revisions = self.ensure_revisions(&observed).await?;
        let plan = self.planner.plan(&observed, &revisions);
        self.act(observed, &revisions, plan).await
    }

    fn members(&self) -> Members<'_> {
        Members {
            pods: &self.pods,
            claims: Some(&self.claims),
            actor: &self.actor,
        }
    }

    fn observe(&self, set: Arc<CloneSet>, selector: &Selector) -> Observed {
        let uid = set.uid().unwrap_or_default();
        let mut claims = self.claims.owned_by(&uid);
        claims.retain(|claim| claim.metadata.deletion_timestamp.is_none());
        let revisions = self.revisions.of(&Owner::of(set.as_ref()), selector);
        let pods = self.pods.owned_by(&uid);
        Observed {
            set,
            pods,
            claims,
            revisions,
            jobs: self.jobs.owned_by(&uid),
            nodes: BTreeMap::new(),
            now: self.actor.clock.now(),
        }
    }

    /// The labels of nodes, if the pass may have to choose among pods that are spread by them. Shrinking is rare and a
    /// cache of all nodes is not small, so they are asked for then.
    async fn node_labels(
        &self,
        observed: &Observed,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, ActError> {
        let active = observed.pods.iter().filter(|pod| pod::is_active(pod)).count();
        let wanted = usize::try_from(observed.set.spec.replicas.unwrap_or(1)).unwrap_or(0);
        if active <= wanted || !spreads_by_labels(&observed.set.spec.template) {
            return Ok(BTreeMap::new());
        }
        let nodes: Api<Node> = Api::all(self.actor.client.clone());
        let list = nodes.list_metadata(&ListParams::default()).await?;
        Ok(list
            .items
            .into_iter()
            .map(|node| (node.name_any(), node.metadata.labels.unwrap_or_default()))
            .collect())
    }

    async fn ensure_revisions(&self, observed: &Observed) -> Result<Revisions, ActError> {
        let set = &observed.set;
        let status = set.status.as_ref();
        self.revisions
            .ensure(
                &self.actor,
                &Owner::of(set.as_ref()),
                set.metadata.deletion_timestamp.is_some(),
                status.and_then(|status| status.collision_count),
                |collisions| plan_revisions::plan(observed, collisions),
            )
            .await
    }

    async fn act(
        &self,
        observed: Observed,
        revisions: &Revisions,
        plan: Plan,
    ) -> Result<Option<Duration>, ActError> {
        let set = &Arc::clone(&observed.set);
        let now = observed.now;
        // The pods change while an update is carried out: as they were they would be in memory once more.
        let observed = (plan.phase == Phase::Scale).then_some(observed);
        for action in &plan.prepare {
            let done = perform(&self.actor, set, revisions, action).await;
            done.map_err(|failed| failed.error)?;
        }
        let old = set.status.clone().unwrap_or_default();
        let mut outcome = Outcome {
            status: plan.status,
            requeue: plan.requeue,
            result: Ok(()),
        };
        let done = self.sync(set, revisions, &plan.sync).await;
        let observed = observed.filter(|_| done.as_ref().is_err_and(|failed| !failed.changed));
        outcome.note(plan.phase, done, (&old, now));
        if let Some(observed) = observed {
            let update = self.planner.plan_unscaled(&observed, revisions);
            drop(observed);
            outcome.requeue = shortest(outcome.requeue, update.requeue);
            let done = self.sync(set, revisions, &update.actions).await;
            outcome.note(Phase::Update, done, (&old, now));
        }
        let Outcome {
            status,
            requeue,
            result,
        } = outcome;
        let mut latest = CloneSet::clone(set);
        if set.status.is_none() || differs(&status, &old) {
            latest = write_status(&self.actor, set, &status).await?;
        }
        for action in &plan.finish {
            if let Err(Failed { error, .. }) = perform(&self.actor, &latest, revisions, action).await {
                tracing::warn!(set = set.name_any(), %error, "failed to tidy up");
            }
        }
        result.map(|()| requeue)
    }

    /// Does these actions, up to the first that fails.
    async fn sync(&self, set: &CloneSet, revisions: &Revisions, actions: &[Action]) -> Result<(), Failed> {
        let mut changed = false;
        for action in actions {
            let done = perform(&self.actor, set, revisions, action).await;
            done.map_err(|failed| Failed {
                changed: changed || failed.changed,
                ..failed
            })?;
            changed |= action.modifies();
        }
        Ok(())
    }
}

/// The outcome of a pass.
struct Outcome {
    status: CloneSetStatus,
    requeue: Option<Duration>,
    /// The first failure.
    result: Result<(), ActError>,
}

impl Outcome {
    /// Notes how scaling or updating ended, beside the status before and the time.
    fn note(
        &mut self,
        phase: Phase,
        done: Result<(), Failed>,
        (old, now): (&CloneSetStatus, jiff::Timestamp),
    ) {
        let Err(Failed { error, .. }) = done else {
            return;
        };
        if error.kind == Kind::Withheld {
            // The update ends here for now, and nothing is told of it.
            self.requeue = shortest(self.requeue, Some(WITHHELD_DELAY));
            return;
        }
        let kind = match phase {
            Phase::Scale => FAILED_SCALE,
            Phase::Update => FAILED_UPDATE,
        };
        add_failure(&mut self.status, old, kind, &error.message, now);
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }
}

/// Whether the pods are spread by labels of nodes other than their names, which pods know themselves.
fn spreads_by_labels(template: &Value) -> bool {
    let list = template
        .pointer("/spec/topologySpreadConstraints")
        .and_then(Value::as_array);
    list.into_iter().flatten().any(|constraint| {
        let key = constraint.get("topologyKey").and_then(Value::as_str);
        key.is_some_and(|key| key != "kubernetes.io/hostname")
    })
}
