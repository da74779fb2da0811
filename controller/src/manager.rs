//! Everything wired to a client.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client_kit::{Clock, EventRecorder, Seed, SeededNames, SharedClock, SharedNames, SystemClock};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::api::v1alpha1::CloneSet;
use crate::cloneset::CachedPod;
use crate::cloneset::act::Actor;
use crate::cloneset::controller::Controller;
use crate::cloneset::expectations::{Expectations, Expected, Member};
use crate::cloneset::owner::controller_of;
use crate::cloneset::{CloneSetPlanner, Planner};
use crate::launch_priority::Launcher;
use crate::metrics::Metrics;
use crate::readiness;
use crate::runtime::{Change, Informer, ObjectKey, RetryDelays, WorkQueue};

/// The controller's name in events, metrics and logs.
const CONTROLLER: &str = "cloneset-controller";
/// How many sets are worked on at the same time, unless said otherwise (OpenKruise: 3).
const DEFAULT_WORKERS: usize = 3;
/// How long a manager that is told to stop waits for the passes that run.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a manager may be given.
#[derive(Clone)]
pub struct Options {
    /// Where the time comes from.
    pub clock: SharedClock,
    /// Where the ids of new pods come from.
    pub names: SharedNames,
    /// How many sets are worked on at the same time.
    pub workers: usize,
    /// How long a set rests between two passes: events that come meanwhile are answered together. Zero on a real
    /// cluster, where requests take time of their own; a simulation, in which they take none, should say some
    /// milliseconds, or every event of a large set costs a pass over all its pods.
    pub rest: Duration,
    /// The rules of CloneSets. Tests put a broken one here to see that it is caught.
    pub planner: Arc<dyn Planner>,
    /// Where passes are counted.
    pub metrics: Arc<Metrics>,
    /// Whether ImagePullJobs are looked at, which the feature gate `PreDownloadImageForInPlaceUpdate` takes.
    pub pull_jobs: bool,
    /// The only namespace that is looked at; all of them if there is none.
    pub namespace: Option<String>,
    /// How long a set waits after failures.
    pub retry: RetryDelays,
}

impl Default for Options {
    /// The system's clock, the rules of OpenKruise 1.9, three workers, and names from a seed of the moment and the
    /// process: two managers never give the same.
    fn default() -> Self {
        let moment =
            u64::try_from(SystemClock.now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or_default();
        let seed = Seed(moment).fork(&std::process::id().to_string());
        Self {
            clock: Arc::new(SystemClock),
            names: Arc::new(SeededNames::new(seed)),
            workers: DEFAULT_WORKERS,
            rest: Duration::ZERO,
            planner: Arc::new(CloneSetPlanner::default()),
            metrics: Arc::default(),
            pull_jobs: false,
            namespace: None,
            retry: RetryDelays::default(),
        }
    }
}

/// The controllers of OpenKruise on one client.
pub struct Manager {
    client: Client,
    options: Options,
}

/// What the handlers of watches share.
struct Shared {
    sets: WorkQueue<ObjectKey>,
    pods: WorkQueue<ObjectKey>,
    launches: WorkQueue<ObjectKey>,
    launcher: Launcher,
    expectations: Arc<Expectations>,
    metrics: Arc<Metrics>,
}

impl Manager {
    /// A manager that speaks through `client`.
    #[must_use]
    pub fn new(client: Client, options: Options) -> Self {
        Self { client, options }
    }

    /// Runs the controllers until `shutdown` is ready; then lets the passes that run come to their end.
    ///
    /// Must be called within a tokio runtime. Failures of requests are retried, so this never fails.
    pub async fn run(self, shutdown: impl Future) {
        let Options {
            clock,
            names,
            workers,
            rest,
            planner,
            metrics,
            pull_jobs,
            namespace,
            retry,
        } = self.options;
        let client = self.client;
        let expectations = Arc::new(Expectations::default());
        let shared = Arc::new(Shared {
            sets: WorkQueue::with_rest(rest).with_retry(retry),
            pods: WorkQueue::new(),
            launches: WorkQueue::new(),
            launcher: Launcher::new(client.clone()),
            expectations: Arc::clone(&expectations),
            metrics: Arc::clone(&metrics),
        });
        let recorder = EventRecorder::new(client.clone(), CONTROLLER, None, Arc::clone(&clock));
        let actor = Actor {
            client: client.clone(),
            recorder,
            expectations,
            names,
            clock: Arc::clone(&clock),
        };
        let controller = Arc::new(Controller {
            sets: Informer::new(),
            pods: Informer::new(),
            claims: Informer::new(),
            revisions: Informer::new(),
            jobs: Informer::new(),
            actor,
            planner,
            written: Mutex::default(),
            metrics,
        });

        let mut watches = JoinSet::new();
        let namespace = namespace.as_deref();
        watch_all(&mut watches, &client, namespace, &controller, &shared);
        if pull_jobs {
            let jobs = controller.jobs.clone();
            watches.spawn(jobs.run(watched(&client, namespace), |_| {}));
        }
        let mut work = JoinSet::new();
        for _ in 0..workers.max(1) {
            work.spawn(work_on_sets(Arc::clone(&controller), Arc::clone(&shared)));
        }
        work.spawn(work_on_pods(
            client,
            controller.pods.clone(),
            clock,
            Arc::clone(&shared),
        ));

        work.spawn(work_on_launches(controller.pods.clone(), Arc::clone(&shared)));

        shutdown.await;
        shared.sets.close();
        shared.pods.close();
        shared.launches.close();
        let all_done = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_TIMEOUT, all_done).await.is_err() {
            tracing::warn!("stopped in the middle of a pass");
        }
    }
}

/// The objects of a namespace, or of all of them.
fn watched<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn watch_all(
    watches: &mut JoinSet<()>,
    client: &Client,
    namespace: Option<&str>,
    controller: &Controller,
    shared: &Arc<Shared>,
) {
    let queue = Arc::clone(shared);
    watches.spawn(
        controller
            .sets
            .clone()
            .run(watched(client, namespace), move |change| {
                if let Change::Deleted(set) = &change {
                    // A new set of the same name has nothing to do with what the old one waited for.
                    queue.expectations.forget_set(&ObjectKey::of(set.as_ref()));
                }
                let (Change::Added(set) | Change::Updated(_, set) | Change::Deleted(set)) = change;
                queue.sets.add(ObjectKey::of(set.as_ref()));
            }),
    );
    let queue = Arc::clone(shared);
    watches.spawn(
        controller
            .pods
            .clone()
            .run(watched(client, namespace), move |change| {
                if let Change::Added(pod) | Change::Updated(_, pod) = &change
                    && readiness::is_due(pod)
                {
                    queue.pods.add(ObjectKey::of(pod.as_ref()));
                }
                if let Change::Added(pod) | Change::Updated(_, pod) = &change
                    && queue.launcher.has_news(pod)
                {
                    queue.launches.add(ObjectKey::of(pod.as_ref()));
                }
                if let Change::Deleted(pod) = &change {
                    queue.launcher.forget(pod);
                    queue
                        .expectations
                        .forget_version(pod.metadata.uid.as_deref().unwrap_or_default());
                }
                queue.member_changed(&change, Member::Pod);
            }),
    );
    let queue = Arc::clone(shared);
    watches.spawn(
        controller
            .claims
            .clone()
            .run(watched(client, namespace), move |change| {
                queue.member_changed::<PersistentVolumeClaim>(&change, Member::Claim);
            }),
    );
    watches.spawn(
        controller
            .revisions
            .clone()
            .run(watched(client, namespace), |_| {}),
    );
}

impl Shared {
    /// A pod or claim changed: settles what was expected of it, and has its set looked at.
    fn member_changed<K: Resource>(&self, change: &Change<'_, K>, member: fn(String) -> Member) {
        let (before, meta, gone) = match change {
            Change::Added(object) => (None, object.meta(), false),
            Change::Updated(old, object) => (Some(old.meta()), object.meta(), false),
            Change::Deleted(object) => (None, object.meta(), true),
        };
        let member = member(meta.name.clone().unwrap_or_default());
        if let Some(owner) = owner_key(meta) {
            if !gone {
                self.expectations
                    .settle(&owner, Expected::Creation, member.clone());
            }
            // Terminating is as good as gone: a successor may be created.
            if gone || meta.deletion_timestamp.is_some() {
                self.expectations
                    .settle(&owner, Expected::Deletion, member.clone());
            }
            self.sets.add(owner);
        }
        if let Some(owner) = before.and_then(owner_key)
            && Some(&owner) != owner_key(meta).as_ref()
        {
            self.expectations.settle(&owner, Expected::Deletion, member);
            self.sets.add(owner);
        }
    }
}

/// The set that controls an object.
fn owner_key(meta: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller_of(meta)?;
    let group = owner.api_version.split('/').next().unwrap_or_default();
    (owner.kind == CloneSet::kind(&()) && group == CloneSet::group(&()))
        .then(|| ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), &owner.name))
}

async fn work_on_sets(controller: Arc<Controller>, shared: Arc<Shared>) {
    controller.sets.wait_synced().await;
    controller.pods.wait_synced().await;
    controller.claims.wait_synced().await;
    controller.revisions.wait_synced().await;
    let active = |change| {
        let labels = [("controller", CONTROLLER)];
        shared
            .metrics
            .add("controller_runtime_active_workers", &labels, change);
    };
    while let Some(key) = shared.sets.next().await {
        active(1.0);
        let began = tokio::time::Instant::now();
        let span = tracing::debug_span!(
            "reconcile",
            controller = CONTROLLER,
            namespace = key.namespace,
            name = key.name
        );
        let result = controller.reconcile(&key).instrument(span).await;
        let outcome = match &result {
            Ok(None) => "success",
            Ok(Some(_)) => "requeue_after",
            Err(_) => "error",
        };
        shared.metrics.reconciled(CONTROLLER, outcome, began.elapsed());
        active(-1.0);
        match result {
            Ok(delay) => {
                shared.sets.forget(&key);
                if let Some(delay) = delay {
                    shared.sets.add_after(key.clone(), delay);
                }
            }
            Err(error) => {
                tracing::warn!(set = key.name, namespace = key.namespace, %error, "failed to reconcile");
                shared
                    .metrics
                    .add("workqueue_retries_total", &[("name", CONTROLLER)], 1.0);
                shared.sets.add_failed(key.clone());
            }
        }
        shared.sets.done(&key);
    }
}

async fn work_on_pods(client: Client, pods: Informer<CachedPod>, clock: SharedClock, shared: Arc<Shared>) {
    while let Some(key) = shared.pods.next().await {
        let due = pods.get(&key).filter(|pod| readiness::is_due(pod));
        let result = match due {
            Some(pod) => readiness::set_ready(&client, &pod, clock.now()).await,
            None => Ok(()),
        };
        match result {
            Ok(()) => shared.pods.forget(&key),
            Err(error) => {
                tracing::warn!(pod = key.name, namespace = key.namespace, %error, "failed to set a pod ready");
                shared.pods.add_failed(key.clone());
            }
        }
        shared.pods.done(&key);
    }
}

async fn work_on_launches(pods: Informer<CachedPod>, shared: Arc<Shared>) {
    while let Some(key) = shared.launches.next().await {
        let result = match pods.get(&key) {
            Some(pod) => shared.launcher.pass(&pod).await,
            None => Ok(()),
        };
        match result {
            Ok(()) => shared.launches.forget(&key),
            Err(error) => {
                tracing::warn!(pod = key.name, namespace = key.namespace, %error, "failed to launch containers");
                shared.launches.add_failed(key.clone());
            }
        }
        shared.launches.done(&key);
    }
}
