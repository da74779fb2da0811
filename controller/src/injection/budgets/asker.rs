//! Asks a budget about a pod.

use std::sync::Arc;

use client_kit::{Seed, SharedClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::{Api, Client, ResourceExt as _};

use super::RESIZE_GATE;
use super::desk::Desk;
use super::judge::{Verdict, is_free, judge, take};
use super::operation::Operation;
use crate::api::labels;
use crate::api::v1alpha1::PodUnavailableBudget;
use crate::kit::admission::{Refusal, Surroundings};
use crate::kit::{ActError, Informer, ObjectKey, Written, controller_of};
use crate::metrics::{Family, Metrics};
use crate::pods::leave::Leave;
use crate::pods::pod;
use crate::pods::{CachedPod, PodRef};

/// The metric of refusals.
pub(crate) const REFUSALS: Family = (
    "pod_unavailable_budget",
    "counter",
    "Number of times that a PodUnavailableBudget kept a pod in service",
);
/// The user that controllers count as.
const MANAGER: &str = "kruise-manager";

/// Asks budgets about pods.
pub(crate) struct Asker {
    /// The connection of the manager.
    pub(crate) client: Client,
    /// The budgets.
    pub(crate) budgets: Informer<PodUnavailableBudget>,
    /// The pods, for controllers, which name them.
    pub(crate) pods: Informer<CachedPod>,
    /// Where the time comes from.
    pub(crate) clock: SharedClock,
    /// Where refusals are counted.
    pub(crate) metrics: Arc<Metrics>,
    /// The desk that the writers of budgets share.
    pub(crate) desk: Arc<Desk>,
    /// Whether resizes are distinguished from other updates.
    pub(crate) tells_resizes: bool,
}

/// The wish to take a pod out of service: the operation and its user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    /// The operation on the pod.
    pub(super) operation: Operation,
    /// The name of the user.
    pub(super) user: &'a str,
    /// Whether nothing is to be written.
    pub(super) dry_run: bool,
    /// The source of random numbers.
    pub(super) seed: Seed,
}

/// Why a pod stays in service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// The budget does not allow it, or it could not be written.
    Refused(String),
}

impl From<ActError> for Denied {
    fn from(error: ActError) -> Self {
        Self::Refused(error.message)
    }
}

impl Asker {
    /// The asker of a webhook; none without a cluster.
    ///
    /// # Errors
    /// The refusal of a request for which the cache comes too late.
    pub(super) async fn of(surroundings: &Surroundings) -> Result<Option<Self>, Refusal> {
        let Some(client) = &surroundings.client else {
            return Ok(None);
        };
        Ok(Some(Self {
            client: client.clone(),
            budgets: surroundings.cache().await?,
            pods: Informer::new(),
            clock: SharedClock::clone(&surroundings.clock),
            metrics: Arc::clone(&surroundings.metrics),
            desk: surroundings.shared.of(),
            tells_resizes: surroundings.gates.is_on(RESIZE_GATE),
        }))
    }

    /// Asks whether something may happen to a pod. When it may, and costs something, the pod is taken out of its budget.
    ///
    /// # Errors
    /// Why the pod stays in service.
    pub(super) async fn ask(&self, pod: &CachedPod, wish: Wish<'_>) -> Result<(), Denied> {
        let namespace = pod.namespace().unwrap_or_default();
        let related = pod::annotation(pod, labels::RELATED_BUDGET).unwrap_or_default();
        if related.is_empty() || is_free(pod) {
            return Ok(());
        }
        let Some(budget) = self.budgets.get(&ObjectKey::new(&namespace, related)) else {
            return Ok(());
        };
        let name = pod::name(pod);
        if judge(&budget, name, wish.operation, self.tells_resizes) == Verdict::Free {
            return Ok(());
        }
        let api = Api::namespaced(self.client.clone(), &namespace);
        let decide = |mut budget: PodUnavailableBudget| {
            let taken = take(&budget, name, wish.operation, self.clock.now());
            let decided = taken.map_err(Denied::Refused).map(|status| {
                budget.status = Some(status);
                ((!wish.dry_run).then_some(budget), ())
            });
            std::future::ready(decided)
        };
        let written: Result<Written<()>, Denied> =
            self.desk.writes.write(&api, &budget, wish.seed, decide).await;
        written.map(drop).inspect_err(|_| self.refused(pod, wish.user))
    }

    /// Tells and counts that a pod was kept in service.
    fn refused(&self, pod: &CachedPod, user: &str) {
        self.desk.record(&self.client, &self.clock, pod);
        let namespace = pod.namespace().unwrap_or_default();
        let (kind, name) = match controller_of(&pod.metadata) {
            Some(owner) => (&*owner.kind, &*owner.name),
            None => ("unknown", pod::name(pod)),
        };
        let object = format!("{kind}_{namespace}_{name}");
        let pairs = [("kind_namespace_name", object.as_str()), ("username", user)];
        self.metrics.add(REFUSALS.0, &pairs, 1.0);
    }
}

impl Leave for Asker {
    fn ask<'a>(&'a self, namespace: &'a str, wanted: &'a PodRef) -> BoxFuture<'a, Result<bool, ActError>> {
        async move {
            let key = ObjectKey::new(namespace, &wanted.name);
            let pod = self.pods.get(&key).filter(|pod| pod::uid(pod) == wanted.uid);
            let Some(pod) = pod else { return Ok(true) };
            let wish = Wish {
                operation: Operation::Update,
                user: MANAGER,
                dry_run: false,
                seed: Seed(0).fork(&wanted.uid),
            };
            Ok(self.ask(&pod, wish).await.is_ok())
        }
        .boxed()
    }
}
