//! Everything wired to a client.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client_kit::{Clock, EventRecorder, Seed, SeededNames, SharedClock, SharedNames, SystemClock};
use kube::Client;

use crate::cloneset::act::Actor;
use crate::cloneset::controller::{CONTROLLER, Controller};
use crate::cloneset::{CloneSetPlanner, Planner};
use crate::kit::{Informer, RetryDelays, Runtime, WorkQueue};
use crate::launch_priority::Launcher;
use crate::metrics::Metrics;
use crate::readiness::Readiness;

/// How many sets are worked on at the same time, unless said otherwise (OpenKruise: 3).
const DEFAULT_WORKERS: usize = 3;

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
        let mut runtime = Runtime::new(client.clone(), namespace, Arc::clone(&metrics));
        let readiness = Readiness::new(client.clone(), runtime.cache(), Arc::clone(&clock));
        runtime.add(&Arc::new(readiness), &Arc::new(WorkQueue::new()), 1);
        let launcher = Launcher::new(client.clone(), runtime.cache());
        runtime.add(&Arc::new(launcher), &Arc::new(WorkQueue::new()), 1);
        let actor = Actor {
            client: client.clone(),
            recorder: EventRecorder::new(client, CONTROLLER, None, Arc::clone(&clock)),
            expectations: Arc::default(),
            names,
            clock,
        };
        let controller = Controller {
            sets: runtime.cache(),
            pods: runtime.cache(),
            claims: runtime.cache(),
            revisions: runtime.cache(),
            jobs: if pull_jobs {
                runtime.cache()
            } else {
                Informer::new()
            },
            actor,
            planner,
            written: Mutex::default(),
            metrics,
        };
        let queue = WorkQueue::with_rest(rest).with_retry(retry);
        runtime.add(&Arc::new(controller), &Arc::new(queue), workers);
        runtime.run(shutdown).await;
    }
}
