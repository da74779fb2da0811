//! The daemon's program.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::health::Health;
use super::images::{self, ImageService};
use super::report::{Environments, is_due, report, unread};
use super::restarts::{self, Restart};
use super::runtime::{ContainerRuntime, PodNetwork};
use super::{Node, probes};
use crate::api::labels;
use crate::api::v1alpha1::{ContainerRecreateRequest, NodePodProbe};
use crate::api::v1beta1::NodeImage;
use crate::gates::FeatureGates;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Reconciler, Runtime, Watches, WorkQueue, settled,
};
use crate::metrics::Metrics;
use crate::pods::pod::{self, Pod};

/// How long after a change a pod is looked at: several come together.
const LOOK_DELAY: Duration = Duration::from_secs(1);
/// How long a container with a wrong environment is left running.
const RESTART_DELAY: Duration = Duration::from_secs(3);
/// How long after a container did not print its environment it is asked again.
const ENVIRONMENT_RETRY: Duration = Duration::from_secs(3);
/// How many pods are reported at a time (OpenKruise: 5).
const REPORT_WORKERS: usize = 5;
/// How long a container may take to print its environment.
const ENVIRONMENT_TIMEOUT: Duration = Duration::from_secs(3);

/// The daemon of one node.
pub struct Daemon {
    node: Node,
    gates: FeatureGates,
    images: Option<Arc<dyn ImageService>>,
    pulls_max: Option<usize>,
    metrics: Arc<Metrics>,
    health: Health,
}

/// Writes down the images and environments that the containers of pods run with.
struct Reports {
    client: Client,
    runtime: Arc<dyn ContainerRuntime>,
    pods: Informer<Pod>,
    restarts: Arc<WorkQueue<Restart>>,
    /// Whether environments are reported, and containers restarted for new ones.
    with_environment: bool,
}

impl Daemon {
    /// A daemon for the pods of the node called `name`, which `runtime` runs and `network` reaches.
    #[must_use]
    pub fn new(
        client: Client,
        name: &str,
        runtime: Arc<dyn ContainerRuntime>,
        network: Arc<dyn PodNetwork>,
        clock: SharedClock,
    ) -> Self {
        let node = Node {
            client,
            name: name.to_owned(),
            runtime,
            network,
            clock,
        };
        Self {
            node,
            gates: FeatureGates::default(),
            images: None,
            pulls_max: None,
            metrics: Arc::default(),
            health: Health::default(),
        }
    }

    /// The same with these feature gates.
    #[must_use]
    pub fn with_gates(mut self, gates: FeatureGates) -> Self {
        self.gates = gates;
        self
    }

    /// The same, which also pulls images by way of `images`.
    #[must_use]
    pub fn with_images(mut self, images: Arc<dyn ImageService>) -> Self {
        self.images = Some(images);
        self
    }

    /// The same, which pulls at most so many images at a time.
    #[must_use]
    pub fn with_pulls_max(mut self, pulls: Option<usize>) -> Self {
        self.pulls_max = pulls;
        self
    }

    /// The same, which counts its passes in `metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Whether it has seen all objects that it watches, while it runs.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs until `shutdown` is ready. Must be called within a tokio runtime.
    pub async fn run(self, shutdown: impl Future) {
        let Self {
            node, gates, health, ..
        } = self;
        let mut runtime = Runtime::new(node.client.clone(), None, self.metrics);
        if let Some(service) = self.images {
            let place = (&node.client, &*node.name, &node.clock);
            let images = images::add(&mut runtime, place, service, self.pulls_max);
            health.follow::<NodeImage>(&mut runtime, &images);
        }
        let pods = gates.is_on("DaemonWatchingPod").then(|| {
            let pods = runtime.selected_cache(&format!("spec.nodeName={}", node.name));
            let with_environment = gates.is_on("InPlaceUpdateEnvFromMetadata");
            report_containers(&mut runtime, &node, &pods, with_environment);
            pods
        });
        if gates.is_on("KruiseDaemon") {
            let requests = restarts::start_requests(&mut runtime, &node, pods.as_ref());
            health.follow::<ContainerRecreateRequest>(&mut runtime, &requests);
        }
        if gates.is_on("PodProbeMarkerGate") {
            let probes = probes::start(&mut runtime, &node);
            health.follow::<NodePodProbe>(&mut runtime, &probes);
        }
        health.begin();
        runtime.run(shutdown).await;
    }
}

/// Adds the reports of containers, and the restarts that follow from them.
fn report_containers(runtime: &mut Runtime, node: &Node, pods: &Informer<Pod>, with_environment: bool) {
    let restarts = Arc::new(WorkQueue::new());
    let reports = Reports {
        client: node.client.clone(),
        runtime: Arc::clone(&node.runtime),
        pods: pods.clone(),
        restarts: Arc::clone(&restarts),
        with_environment,
    };
    runtime.add(&Arc::new(reports), &Arc::new(WorkQueue::new()), REPORT_WORKERS);
    restarts::start_environment(runtime, node, pods, &restarts);
}

impl Reconciler for Reports {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "containermeta"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let with_environment = self.with_environment;
        watches.on(&self.pods, move |change, queue| {
            let (old, pod) = match change {
                Change::Added(pod) => (None, pod),
                Change::Updated(old, pod) => (Some(old.as_ref()), pod),
                Change::Deleted(_) => return,
            };
            if is_due(old, pod, with_environment) {
                queue.add_after(ObjectKey::of(pod.as_ref()), LOOK_DELAY);
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.look_at(key).await
    }
}

impl Reports {
    /// The environments of containers, as `env` prints them. One that cannot be read is left out.
    async fn environments(&self, containers: &[&super::RunningContainer]) -> Environments {
        let mut all = BTreeMap::new();
        for container in containers {
            let command = ["env".to_owned()];
            let printed = self
                .runtime
                .exec(&container.id, &command, ENVIRONMENT_TIMEOUT)
                .await;
            if let Ok(printed) = printed
                && printed.code == 0
            {
                let text = String::from_utf8_lossy(&printed.out).into_owned();
                let pairs = text.lines().filter_map(|line| line.split_once('='));
                let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
                all.insert(container.id.clone(), pairs.collect());
            }
        }
        all
    }

    async fn look_at(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(pod) = self
            .pods
            .get(key)
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        else {
            return Ok(Next::Event);
        };
        let running = self.runtime.containers(pod::uid(&pod)).await;
        let running = running.map_err(|error| ActError::planned(&error.to_string()))?;
        let environments = match self.with_environment {
            true => Some(self.environments(&unread(&pod, &running)).await),
            false => None,
        };
        let report = report(&pod, &running, environments.as_ref());
        let next = match report.is_incomplete {
            true => Next::After(ENVIRONMENT_RETRY),
            false => Next::Event,
        };
        for (id, name) in report.restarts {
            let restart = Restart {
                pod: key.clone(),
                uid: pod::uid(&pod).to_owned(),
                id,
                name,
            };
            self.restarts.add_after(restart, RESTART_DELAY);
        }
        let Some(text) = report.text else {
            return Ok(next);
        };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let patch = json!({ "metadata": {
            "uid": pod::uid(&pod),
            "annotations": { labels::RUNTIME_CONTAINERS: text },
        } });
        // By way of the status, as the daemon may write nothing else of a pod.
        let written = api
            .patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch))
            .await;
        settled(written).map(|()| next)
    }
}
