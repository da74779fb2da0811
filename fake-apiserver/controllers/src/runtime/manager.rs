//! Runs controllers on one set of watches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client_kit::{Agenda, Desk, Due, EventRecorder, JsonChange, ObjectClient, SharedClock, watch_json};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use shared_json::Value;
use tokio::time::Instant;

use super::cache::Cache;
use super::context::Cx;
use super::queue::Queue;
use super::resource::{Key, Res};
use crate::builtin;
use client_kit::timer;
use machinery::meta::ObjectMeta as _;
use pki::Authority;

/// How many of the next keys an agenda gets.
const TOLD_MAX: usize = 20;

/// When to process the key of a pass again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// When something changes.
    Change,
    /// After some time, too.
    After(Duration),
}

impl From<Option<Duration>> for Next {
    fn from(delay: Option<Duration>) -> Self {
        delay.map_or(Self::Change, Self::After)
    }
}

/// One controller.
#[async_trait]
pub(crate) trait Controller: Send {
    /// Its name, as its events show it.
    fn name(&self) -> &'static str;

    /// The kinds that it watches.
    fn watches(&self) -> &'static [Res];

    /// The keys that a change concerns. `old` is the former version; when the object is gone, `object` is its
    /// last state.
    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key>;

    /// Leaves out the waits that the real one makes for reasons of its own, as far as it has any.
    fn be_quick(&mut self) {}

    /// How long a change of that kind waits, so that several are looked at together.
    fn delay(&self, _res: Res, _object: &Value, _old: Option<&Value>) -> Duration {
        Duration::ZERO
    }

    /// Brings one of its objects on.
    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error>;
}

/// The controllers that can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BuiltIn {
    /// ReplicaSets.
    ReplicaSet,
    /// ReplicationControllers.
    ReplicationController,
    /// Deployments.
    Deployment,
    /// StatefulSets.
    StatefulSet,
    /// DaemonSets.
    DaemonSet,
    /// Jobs.
    Job,
    /// CronJobs.
    CronJob,
    /// Removes finished jobs after their time.
    TtlAfterFinished,
    /// EndpointSlices and Endpoints of services.
    EndpointSlice,
    /// EndpointSlices that mirror Endpoints which clients keep.
    EndpointSliceMirroring,
    /// The status of disruption budgets.
    Disruption,
    /// The status of resource quotas.
    ResourceQuota,
    /// Binds claims to volumes, makes volumes, protects both.
    PersistentVolume,
    /// Taints of nodes that are not ready, and eviction of their pods.
    NodeLifecycle,
    /// Removes pods of nodes that are gone, and finished pods beyond a limit.
    PodGarbage,
    /// Sizes of workloads that follow a load.
    HorizontalPodAutoscaler,
    /// Rules of aggregated cluster roles.
    ClusterRoleAggregation,
    /// Claims of volumes that live as long as their pods.
    EphemeralVolume,
    /// Tokens that are kept in Secrets.
    ServiceAccountToken,
    /// The status of validating admission policies.
    AdmissionPolicyStatus,
    /// The status of service networks.
    ServiceCidr,
    /// Claims of devices that pods have by templates, and the reservations of claims.
    ResourceClaim,
    /// Evicts pods whose devices are tainted.
    DeviceTaintEviction,
    /// Approves requests of kubelets for certificates.
    CertificateApproval,
    /// Signs requests for certificates that have been approved.
    CertificateSigning,
    /// Removes requests for certificates that are over.
    CertificateCleaner,
    /// How long nodes may remember Secrets.
    NodeTtl,
    /// Keeps classes of attributes of volumes while they are used.
    AttributesClassProtection,
    /// Addresses of services of type `LoadBalancer`, as a cloud provider gives them.
    LoadBalancer,
}

impl BuiltIn {
    /// All controllers that run unless they are left out: those of a cloud provider are not among them.
    pub const ALL: [Self; 28] = [
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::Job,
        Self::CronJob,
        Self::TtlAfterFinished,
        Self::EndpointSlice,
        Self::EndpointSliceMirroring,
        Self::Disruption,
        Self::ResourceQuota,
        Self::PersistentVolume,
        Self::NodeLifecycle,
        Self::PodGarbage,
        Self::HorizontalPodAutoscaler,
        Self::ClusterRoleAggregation,
        Self::EphemeralVolume,
        Self::ServiceAccountToken,
        Self::AdmissionPolicyStatus,
        Self::ServiceCidr,
        Self::ResourceClaim,
        Self::DeviceTaintEviction,
        Self::CertificateApproval,
        Self::CertificateSigning,
        Self::CertificateCleaner,
        Self::NodeTtl,
        Self::AttributesClassProtection,
    ];
}

/// Runs built-in controllers.
pub struct ControllerManager {
    client: Client,
    objects: ObjectClient,
    clock: SharedClock,
    controllers: Vec<(Box<dyn Controller>, EventRecorder)>,
    cache: Cache,
    queue: Queue<(usize, Key)>,
    unsynced: BTreeSet<Res>,
    authority: Option<Arc<Authority>>,
    desk: Desk,
}

impl ControllerManager {
    /// A manager of `which`. Must be made within a tokio runtime.
    #[must_use]
    pub fn new(client: impl Into<ObjectClient>, clock: SharedClock, which: &[BuiltIn]) -> Self {
        let objects = client.into();
        let controllers = which
            .iter()
            .map(|which| {
                let controller = builtin(*which);
                let recorder =
                    EventRecorder::new(objects.clone(), controller.name(), None, Arc::clone(&clock));
                (controller, recorder.with_reporting(true))
            })
            .collect();
        Self {
            client: objects.client().clone(),
            objects,
            clock,
            controllers,
            cache: Cache::default(),
            queue: Queue::new(),
            unsynced: BTreeSet::new(),
            authority: None,
            desk: Desk::default(),
        }
    }

    /// Gives this agenda the keys that the controllers wait for.
    #[must_use]
    pub fn with_agenda(mut self, agenda: &Agenda) -> Self {
        self.desk = agenda.desk();
        self
    }

    /// Signs certificates by this authority; without one none are signed.
    #[must_use]
    pub fn with_authority(mut self, authority: Option<Arc<Authority>>) -> Self {
        self.authority = authority;
        self
    }

    /// Whether controllers leave out the waits that real ones make for reasons of their own: a Job gathers changes for milliseconds
    /// instead of a second, and the waits after failed pods are a thousandth of the real ones.
    #[must_use]
    pub fn quick(mut self, quick: bool) -> Self {
        for (controller, _) in self.controllers.iter_mut().filter(|_| quick) {
            controller.be_quick();
        }
        self
    }

    /// Runs until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(mut self) {
        let kinds: BTreeSet<Res> = self
            .controllers
            .iter()
            .flat_map(|(controller, _)| controller.watches().iter().copied())
            .collect();
        let mut changes: SelectAll<BoxStream<'static, (Res, JsonChange)>> = SelectAll::new();
        for res in &kinds {
            let res = *res;
            let watch = watch_json(self.client.clone(), &res.path(""), "", false);
            changes.push(watch.map(move |change| (res, change)).boxed());
        }
        self.unsynced = kinds;
        loop {
            // Everything that is known is taken in before anything is done.
            while let Some(Some((res, change))) = changes.next().now_or_never() {
                self.observe(res, change);
            }
            let due = if self.unsynced.is_empty() {
                self.queue.next_due()
            } else {
                None
            };
            tokio::select! {
                biased;
                Some((res, change)) = changes.next() => self.observe(res, change),
                answer = self.desk.asked() => {
                    // Whoever has asked may be gone.
                    let _ = answer.send(self.due());
                }
                () = timer::until(due) => self.work().await,
            }
        }
    }

    /// The next keys of the controllers.
    fn due(&self) -> Vec<Due> {
        let told = |(at, (index, key)): (Instant, &(usize, Key))| Due {
            at,
            who: self
                .controllers
                .get(*index)
                .map_or_else(String::new, |(controller, _)| controller.name().to_owned()),
            what: match key.namespace.as_str() {
                "" => key.name.to_string(),
                namespace => format!("{namespace}/{}", key.name),
            },
        };
        self.queue.next().take(TOLD_MAX).map(told).collect()
    }

    fn observe(&mut self, res: Res, change: JsonChange) {
        let (object, old) = match change {
            JsonChange::Synced => {
                self.unsynced.remove(&res);
                return;
            }
            JsonChange::Present(object) => match self.cache.told(res, object) {
                Some((object, old)) => (object, old),
                None => return,
            },
            JsonChange::Gone(object) => match self.cache.gone(object.uid()) {
                Some(last) => (last, None),
                // We deleted it ourselves; those whom it concerns look again all the same.
                None if object.name().is_empty() => return,
                None => (object, None),
            },
        };
        for (index, (controller, _)) in self.controllers.iter().enumerate() {
            if !controller.watches().contains(&res) {
                continue;
            }
            for key in controller.affected(&self.cache, res, &object, old.as_deref()) {
                let delay = controller.delay(res, &object, old.as_deref());
                if delay.is_zero() {
                    self.queue.add((index, key));
                } else {
                    self.queue.add_after((index, key), delay);
                }
            }
        }
    }

    async fn work(&mut self) {
        let Some((index, key)) = self.queue.pop() else {
            return;
        };
        let Some((controller, recorder)) = self.controllers.get_mut(index) else {
            return;
        };
        let mut cx = Cx {
            client: &self.client,
            objects: &self.objects,
            clock: &self.clock,
            cache: &mut self.cache,
            recorder,
            authority: self.authority.as_deref(),
        };
        let thing = (index, key);
        match controller.sync(&mut cx, &thing.1).await {
            Ok(next) => {
                self.queue.succeeded(&thing);
                if let Next::After(delay) = next {
                    self.queue.add_after(thing, delay);
                }
            }
            Err(error) => {
                tracing::debug!(controller = controller.name(), namespace = thing.1.namespace.as_str(), name = thing.1.name.as_str(), %error, "sync");
                self.queue.add_failed(thing);
            }
        }
    }
}
