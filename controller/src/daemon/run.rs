//! The daemon's program.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::images::{self, ImageService};
use super::report::{is_due, report};
use super::restarts::{self, Restart};
use super::runtime::{ContainerRuntime, PodNetwork};
use super::{Node, probes};
use crate::api::labels;
use crate::gates::FeatureGates;
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Runtime, Watches, WorkQueue};
use crate::pods::pod::{self, Pod};

/// How long after a change a pod is looked at: several come together.
const LOOK_DELAY: Duration = Duration::from_secs(1);
/// How long a container with a wrong environment is left running.
const RESTART_DELAY: Duration = Duration::from_secs(3);
/// How long a container may take to print its environment.
const ENVIRONMENT_TIMEOUT: Duration = Duration::from_secs(3);

/// The daemon of one node.
pub struct Daemon {
    node: Node,
    gates: FeatureGates,
    images: Option<Arc<dyn ImageService>>,
}

/// Writes down what the containers of pods run with.
struct Reports {
    client: Client,
    runtime: Arc<dyn ContainerRuntime>,
    pods: Informer<Pod>,
    restarts: Arc<WorkQueue<Restart>>,
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

    /// Runs until `shutdown` is ready. Must be called within a tokio runtime.
    pub async fn run(self, shutdown: impl Future) {
        let Self { node, gates, images } = self;
        let mut runtime = Runtime::new(node.client.clone(), None, Arc::default());
        if let Some(service) = images {
            images::add(
                &mut runtime,
                (&node.client, &node.name, &node.clock),
                service,
                None,
            );
        }
        let pods = runtime.selected_cache(&format!("spec.nodeName={}", node.name));
        let restarts = Arc::new(WorkQueue::new());
        let reports = Reports {
            client: node.client.clone(),
            runtime: Arc::clone(&node.runtime),
            pods: pods.clone(),
            restarts: Arc::clone(&restarts),
        };
        runtime.add(&Arc::new(reports), &Arc::new(WorkQueue::new()), 1);
        restarts::start_environment(&mut runtime, &node, &pods, &restarts);
        if gates.is_on("KruiseDaemon") {
            restarts::start_requests(&mut runtime, &node, &pods);
        }
        if gates.is_on("PodProbeMarkerGate") {
            probes::start(&mut runtime, &node);
        }
        runtime.run(shutdown).await;
    }
}

impl Reconciler for Reports {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "containermeta"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.pods, |change, queue| {
            let (old, pod) = match change {
                Change::Added(pod) => (None, pod),
                Change::Updated(old, pod) => (Some(old.as_ref()), pod),
                Change::Deleted(_) => return,
            };
            if is_due(old, pod) {
                queue.add_after(ObjectKey::of(pod.as_ref()), LOOK_DELAY);
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        self.look_at(key).await?;
        Ok(Next::Event)
    }
}

impl Reports {
    /// The environments of running containers by id, as `env` prints them.
    async fn environments(
        &self,
        running: &[super::RunningContainer],
    ) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for container in running.iter().filter(|container| container.running) {
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

    async fn look_at(&self, key: &ObjectKey) -> Result<(), ActError> {
        let Some(pod) = self
            .pods
            .get(key)
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        else {
            return Ok(());
        };
        let running = self.runtime.containers(pod::uid(&pod)).await;
        let running = running.map_err(|error| ActError::planned(&error.to_string()))?;
        let environments = self.environments(&running).await;
        let report = report(&pod, &running, |id| environments.get(id).cloned());
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
            return Ok(());
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
        match written.map_err(ActError::from) {
            Err(error) if !error.is_about_another() => Err(error),
            _ => Ok(()),
        }
    }
}
