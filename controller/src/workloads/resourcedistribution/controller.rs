//! The reconciler: from a distribution to the steps in each namespace.

use std::fmt::Debug;
use std::sync::Arc;

use client_kit::SharedClock;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::Value;

use super::cached::{CachedObject, distribution_of};
use super::plan::{Found, Step, clean, distribute};
use super::status::{Counts, Failure, FailureKind, retried, status};
use super::targets::{Labels, divide, names_namespace, selects, wants};
use crate::api::v1alpha1::{ResourceDistribution, ResourceDistributionTargets};
use crate::kit::{
    ActError, Change, Desk, Informer, Kind, Next, ObjectKey, OnFailure, Reconciler, Watches, WorkQueue,
    in_batches, requests,
};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "resourcedistribution-controller";

/// The reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) distributions: Informer<ResourceDistribution>,
    /// The distributions as this process wrote them.
    pub(super) desk: Desk<ResourceDistribution>,
    pub(super) namespaces: Informer<Namespace>,
    pub(super) secrets: Informer<CachedObject<Secret>>,
    pub(super) config_maps: Informer<CachedObject<ConfigMap>>,
}

/// How often a place is planned anew in a pass, since its object is another than was known.
const LOOKS_MAX: u32 = 3;

/// The place of a copy.
struct Place<'a> {
    distribution: &'a ResourceDistribution,
    namespace: String,
    name: &'a str,
    /// Whether the targets match the namespace.
    matched: bool,
}

/// The kinds that are copied.
trait Copied: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Debug + 'static {}
impl Copied for Secret {}
impl Copied for ConfigMap {}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.distributions, |change, queue| match change {
            Change::Added(new) | Change::Deleted(new) => queue.add(ObjectKey::of(new.as_ref())),
            Change::Updated(old, new) if old.spec != new.spec => queue.add(ObjectKey::of(new.as_ref())),
            Change::Updated(..) => {}
        });
        watches.on(&self.secrets, copy_changed);
        watches.on(&self.config_maps, copy_changed);
        let distributions = self.distributions.clone();
        watches.on(&self.namespaces, move |change, queue| {
            for distribution in distributions.all() {
                if concerns(change, &distribution.spec.targets) {
                    queue.add(ObjectKey::of(distribution.as_ref()));
                }
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(distribution) = self.distributions.get(key) else {
            self.desk
                .forget_missing(|known| self.distributions.get(&ObjectKey::of(known)).is_some());
            return Ok(Next::Event);
        };
        let distribution = Arc::new(self.desk.newest(&distribution));
        // OpenKruise looks away here, and makes copies anew that the garbage collector takes.
        if distribution.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Event);
        }
        let resource = &distribution.spec.resource;
        let kind = resource.get("kind").and_then(Value::as_str);
        match (resource.get("apiVersion").and_then(Value::as_str), kind) {
            (Some("v1"), Some("Secret")) => self.sync(&distribution, &self.secrets).await,
            (Some("v1"), Some("ConfigMap")) => self.sync(&distribution, &self.config_maps).await,
            // The webhook lets nothing else through.
            _ => Ok(Next::Event),
        }
    }
}

/// A Secret or ConfigMap changed: has the distribution looked at that owns it, or has owned it.
fn copy_changed<K: Resource<DynamicType = ()>>(
    change: &Change<'_, CachedObject<K>>,
    queue: &WorkQueue<ObjectKey>,
) {
    let owners = match change {
        Change::Added(_) => return,
        Change::Updated(old, new) => [Some(old), Some(new)],
        Change::Deleted(old) => [Some(old), None],
    };
    for owner in owners.into_iter().flatten() {
        if let Some(name) = distribution_of(owner.meta()) {
            queue.add(ObjectKey::new("", name));
        }
    }
}

/// Whether a distribution with these targets is looked at when a namespace changes.
fn concerns(change: &Change<'_, Namespace>, targets: &ResourceDistributionTargets) -> bool {
    match change {
        Change::Added(new) => wants(targets, &new.name_any(), new.labels()),
        Change::Updated(old, new) if old.labels() != new.labels() => {
            selects(targets, old.labels()) || selects(targets, new.labels())
        }
        Change::Updated(..) => false,
        Change::Deleted(old) => names_namespace(targets, &old.name_any()),
    }
}

impl Controller {
    /// One pass over a distribution of kind `K`.
    async fn sync<K: Copied>(
        &self,
        distribution: &Arc<ResourceDistribution>,
        copies: &Informer<CachedObject<K>>,
    ) -> Result<Next, ActError> {
        let namespaces = self.namespaces.all();
        let existing: Vec<(String, &Labels)> = namespaces
            .iter()
            .map(|namespace| (namespace.name_any(), namespace.labels()))
            .collect();
        let existing = existing.iter().map(|(name, labels)| (name.as_str(), *labels));
        let division =
            divide(&distribution.spec.targets, existing).map_err(|message| ActError::planned(&message))?;
        let name = distribution
            .spec
            .resource
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let perform = |namespace: &String, matched: bool| {
            let place = Place {
                distribution,
                namespace: namespace.clone(),
                name,
                matched,
            };
            let cached = copies.get(&ObjectKey::new(namespace, name));
            let step = self.step(&place, cached.as_deref());
            async move { self.perform::<K>(&place, step).await }
        };
        let (matched, unmatched) = (&division.matched, &division.unmatched);
        let mut results = in_batches(matched, OnFailure::GoOn, |name| perform(name, true)).await;
        let counts = Counts {
            desired: matched.len(),
            succeeded: results.iter().filter(|result| result.is_ok()).count(),
        };
        results.extend(in_batches(unmatched, OnFailure::GoOn, |name| perform(name, false)).await);
        let failures: Vec<Failure> = results.into_iter().filter_map(Result::err).collect();
        self.write_status(distribution, counts, &failures).await?;
        match retried(&failures) {
            None => Ok(Next::Event),
            Some(message) => Err(ActError::planned(&message)),
        }
    }

    /// Plans a place where this object stands.
    fn step<K: Copied>(&self, place: &Place<'_>, there: Option<&CachedObject<K>>) -> Step {
        let at = self.namespaces.get(&ObjectKey::new("", &place.namespace));
        let found = there.map(|there| Found {
            metadata: there.meta(),
            object: there.object(),
        });
        if place.matched {
            distribute(place.distribution, &place.namespace, at.as_deref(), found)
        } else {
            clean(place.distribution, at.as_deref(), found)
        }
    }

    /// Performs a step. If the object is another than the cache says, it is read, and the place is planned anew.
    async fn perform<K: Copied>(&self, place: &Place<'_>, mut step: Step) -> Result<(), Failure> {
        let failed = |kind, error: &ActError| Failure::new(kind, &place.namespace, &error.message);
        let mut looks = 0;
        loop {
            let (kind, error) = match self.attempt::<K>(place, step).await? {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if !matches!(error.kind, Kind::AlreadyExists | Kind::Conflict) || looks == LOOKS_MAX {
                return Err(failed(kind, &error));
            }
            looks += 1;
            let api: Api<CachedObject<K>> = Api::namespaced(self.client.clone(), &place.namespace);
            let there = api.get_opt(place.name).await.map_err(ActError::from);
            let there = there.map_err(|error| failed(FailureKind::GetResourceFailed, &error))?;
            step = self.step(place, there.as_ref());
        }
    }

    /// Performs a step; the inner error is that of its request.
    async fn attempt<K: Copied>(
        &self,
        place: &Place<'_>,
        step: Step,
    ) -> Result<Result<(), (FailureKind, ActError)>, Failure> {
        let (client, namespace, name) = (&self.client, &*place.namespace, place.name);
        let (kind, sent) = match step {
            Step::Nothing => return Ok(Ok(())),
            Step::Fail(failure) => return Err(failure),
            Step::Create(object) => {
                let created = requests::create::<K>(client, namespace, &PostParams::default(), &object).await;
                (FailureKind::CreateResourceFailed, created.map(drop))
            }
            Step::Update(object) => {
                let updated = requests::replace::<K>(client, namespace, name, &object).await;
                (FailureKind::UpdateResourceFailed, updated.map(drop))
            }
            Step::Delete(preconditions) => {
                let api: Api<CachedObject<K>> = Api::namespaced(client.clone(), namespace);
                let deletion = DeleteParams::default().preconditions(preconditions);
                let deleted = api.delete(name, &deletion).await.map_err(ActError::from);
                let gone = matches!(&deleted, Err(error) if error.kind == Kind::NotFound);
                let deleted = if gone { Ok(()) } else { deleted.map(drop) };
                (FailureKind::DeleteResourceFailed, deleted)
            }
        };
        Ok(sent.map_err(|error| (kind, error)))
    }

    async fn write_status(
        &self,
        distribution: &ResourceDistribution,
        counts: Counts,
        failures: &[Failure],
    ) -> Result<(), ActError> {
        let old = distribution.status.clone().unwrap_or_default();
        let generation = distribution.metadata.generation.unwrap_or_default();
        let new = status(&old, generation, counts, failures, self.clock.now());
        if new == old {
            return Ok(());
        }
        let api: Api<ResourceDistribution> = Api::all(self.client.clone());
        let written =
            requests::write_status(&api, distribution, |latest| latest.status = Some(new.clone())).await?;
        self.desk.keep(written);
        Ok(())
    }
}
