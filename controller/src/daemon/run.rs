//! The daemon's program.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, EventType, SharedClock};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::images::{self, ImageService};
use super::report::{is_due, report};
use super::runtime::ContainerRuntime;
use crate::api::labels;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Reconciler, Runtime, Subject, Watches, WorkQueue,
};
use crate::pods::pod::{self, Pod};

/// Who reports.
const COMPONENT: &str = "kruise-daemon-containermeta";
/// How long after a change a pod is looked at: several come together.
const LOOK_DELAY: Duration = Duration::from_secs(1);
/// How long a container with a wrong environment is left running.
const RESTART_DELAY: Duration = Duration::from_secs(3);
/// The grace of a pod that names none.
const GRACE_SECONDS: u64 = 30;

/// A container to restart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Restart {
    pod: ObjectKey,
    uid: String,
    id: String,
    name: String,
}

/// The daemon of one node.
pub struct Daemon {
    client: Client,
    node: String,
    runtime: Arc<dyn ContainerRuntime>,
    images: Option<Arc<dyn ImageService>>,
    clock: SharedClock,
}

/// Writes down what the containers of pods run with.
struct Reports {
    client: Client,
    runtime: Arc<dyn ContainerRuntime>,
    pods: Informer<Pod>,
    restarts: Arc<WorkQueue<Restart>>,
}

/// Ends containers whose environment has changed; the kubelet starts them anew.
struct Restarts {
    runtime: Arc<dyn ContainerRuntime>,
    recorder: EventRecorder,
    pods: Informer<Pod>,
}

impl Daemon {
    /// A daemon for the pods of `node`, which `runtime` runs.
    #[must_use]
    pub fn new(client: Client, node: &str, runtime: Arc<dyn ContainerRuntime>, clock: SharedClock) -> Self {
        Self {
            client,
            node: node.to_owned(),
            runtime,
            images: None,
            clock,
        }
    }

    /// The same, which also pulls images by way of `images`.
    #[must_use]
    pub fn with_images(mut self, images: Arc<dyn ImageService>) -> Self {
        self.images = Some(images);
        self
    }

    /// Runs until `shutdown` is ready. Must be called within a tokio runtime.
    pub async fn run(self, shutdown: impl Future) {
        let mut runtime = Runtime::new(self.client.clone(), None, Arc::default());
        if let Some(service) = self.images {
            images::add(
                &mut runtime,
                (&self.client, &self.node, &self.clock),
                service,
                None,
            );
        }
        let recorder = EventRecorder::new(self.client.clone(), COMPONENT, Some(&self.node), self.clock);
        let pods = runtime.selected_cache(&format!("spec.nodeName={}", self.node));
        let restarts = Arc::new(WorkQueue::new());
        let reports = Reports {
            client: self.client,
            runtime: Arc::clone(&self.runtime),
            pods: pods.clone(),
            restarts: Arc::clone(&restarts),
        };
        runtime.add(&Arc::new(reports), &Arc::new(WorkQueue::new()), 1);
        let restarter = Restarts {
            runtime: self.runtime,
            recorder,
            pods,
        };
        runtime.add(&Arc::new(restarter), &restarts, 1);
        runtime.run(shutdown).await;
    }
}

impl Subject for Restart {
    fn namespace(&self) -> &str {
        &self.pod.namespace
    }

    fn name(&self) -> &str {
        &self.pod.name
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

impl Reconciler for Restarts {
    type Key = Restart;

    fn name(&self) -> &'static str {
        "containermeta-restarter"
    }

    fn watches(&self, _: &mut Watches<Restart>) {}

    async fn pass(&self, restart: &Restart) -> Result<Next, ActError> {
        self.stop(restart);
        Ok(Next::Event)
    }
}

impl Reports {
    async fn look_at(&self, key: &ObjectKey) -> Result<(), ActError> {
        let Some(pod) = self
            .pods
            .get(key)
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        else {
            return Ok(());
        };
        let running = self.runtime.containers(pod::uid(&pod));
        let report = report(&pod, &running, |id| self.runtime.environment(id));
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

impl Restarts {
    fn stop(&self, restart: &Restart) {
        let runs = |container: &super::RunningContainer| container.id == restart.id && container.running;
        let Some(pod) = self
            .pods
            .get(&restart.pod)
            .filter(|pod| pod.uid().as_deref() == Some(&restart.uid))
        else {
            return;
        };
        if !self.runtime.containers(&restart.uid).iter().any(runs) {
            return;
        }
        let runtime = restart.id.split("://").next().unwrap_or_default();
        // The runtime's id reads as the container's name in events.
        let message = format!(
            "Stopping containerID {runtime}://{} by container meta restarter",
            restart.name
        );
        let reference = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(restart.pod.namespace.clone()),
            name: Some(restart.pod.name.clone()),
            uid: Some(restart.uid.clone()),
            field_path: Some(format!("implicitly required container {}", restart.name)),
            ..ObjectReference::default()
        };
        self.recorder
            .event(&reference, EventType::Normal, "Killing", message);
        let grace = pod.spec.termination_grace_period_seconds;
        let grace = grace
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(GRACE_SECONDS);
        self.runtime.stop(&restart.id, grace);
    }
}
