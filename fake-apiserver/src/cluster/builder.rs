//! Builds a cluster.

mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Seed, SharedNames};
use controllers::BuiltIn;
use futures::future::BoxFuture;
use jiff::Timestamp;
use nodes::{
    ContainerProgram, ContainerPrograms, Containers, ImageRegistry, NodeSpec, OutsidePrograms, Timing,
};
use pki::{Authority, FrontProxy};
use server::{EVENT_LIFE, Webhook};
use shared_json::Value;

use super::error::ClusterError;
use super::{Cluster, ControllerSet};
use crate::sample_api;

/// The default start of a cluster's clock: 2026-01-01T00:00:00Z.
const DEFAULT_START_SECOND: i64 = 1_767_225_600;

/// Builds a [`Cluster`].
#[must_use]
pub struct ClusterBuilder {
    seed: Seed,
    authority: Option<Arc<Authority>>,
    front_proxy: Option<Arc<FrontProxy>>,
    event_life: Duration,
    start: Timestamp,
    nodes: Vec<NodeSpec>,
    placements: BTreeMap<String, String>,
    images: ImageRegistry,
    outside: Option<Arc<dyn OutsidePrograms>>,
    programs: ContainerPrograms,
    containers: Option<Containers>,
    timing: Timing,
    pod_timings: BTreeMap<String, Vec<Option<Timing>>>,
    names: Option<SharedNames>,
    objects: Vec<Value>,
    webhooks: Vec<Webhook>,
    controllers: ControllerSet,
    data_dir: Option<PathBuf>,
    trace: bool,
    system_objects: bool,
    heartbeat: Option<Duration>,
    quick: bool,
    storage_class: bool,
    agenda: bool,
    metrics_api: bool,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            seed: Seed(0),
            authority: None,
            front_proxy: None,
            event_life: EVENT_LIFE,
            start: Timestamp::from_second(DEFAULT_START_SECOND).unwrap_or(Timestamp::UNIX_EPOCH),
            nodes: (1..=3).map(NodeSpec::numbered).collect(),
            placements: BTreeMap::new(),
            images: ImageRegistry::default(),
            outside: None,
            programs: programs(),
            containers: None,
            timing: Timing::default(),
            pod_timings: BTreeMap::new(),
            names: None,
            objects: Vec::new(),
            webhooks: Vec::new(),
            controllers: ControllerSet::all(),
            data_dir: None,
            trace: false,
            system_objects: false,
            heartbeat: None,
            quick: false,
            storage_class: false,
            agenda: false,
            metrics_api: false,
        }
    }
}

/// The programs in Rust that stand for images without a user's doing.
fn programs() -> ContainerPrograms {
    let mut programs = ContainerPrograms::default();
    programs.add(sample_api::IMAGE, sample_api::program());
    programs
}

impl ClusterBuilder {
    /// The number that the run is a function of.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed(seed);
        self
    }

    /// When the cluster's clock begins.
    pub fn start_time(mut self, start: Timestamp) -> Self {
        self.start = start;
        self
    }

    /// `count` equal nodes, `node1` and so on. Without any there is no kubelet and no scheduler.
    pub fn nodes(mut self, count: u32) -> Self {
        self.nodes = (1..=count).map(NodeSpec::numbered).collect();
        self
    }

    /// These nodes.
    pub fn node_specs(mut self, nodes: Vec<NodeSpec>) -> Self {
        self.nodes = nodes;
        self
    }

    /// The nodes to which pods of these names go, if they can.
    pub fn placements(mut self, placements: BTreeMap<String, String>) -> Self {
        self.placements = placements;
        self
    }

    /// Registers the nodes' containers with `containers`, for a program that talks to their container runtime.
    pub fn containers(mut self, containers: Containers) -> Self {
        self.containers = Some(containers);
        self
    }

    /// The images that nodes can run. One that is not in the registry is on every node.
    pub fn images(mut self, images: ImageRegistry) -> Self {
        self.images = images;
        self
    }

    /// Has containers of an image run a program in Rust. A name with `*` at its end stands for all images that begin so, one without a
    /// tag for every tag.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fake_apiserver::Cluster;
    /// # use fake_apiserver::nodes::Container;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::api::{Api, LogParams, PostParams};
    /// # use std::time::Duration;
    /// let hello = |container: Container| async move {
    ///     container.print(&format!("hello from {}\n", container.hostname()));
    ///     0
    /// };
    /// let cluster = Cluster::builder().nodes(1).program("my/image", hello).start().await?;
    /// let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    /// let pod = serde_json::from_value(serde_json::json!({
    ///     "metadata": {"name": "p"},
    ///     "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "my/image:1"}]},
    /// }))?;
    /// pods.create(&PostParams::default(), &pod).await?;
    /// cluster.run_for(Duration::from_secs(5)).await;
    /// assert_eq!(pods.logs("p", &LogParams::default()).await?, "hello from p\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn program(mut self, image: &str, program: impl ContainerProgram + 'static) -> Self {
        self.programs.add(image, Arc::new(program));
        self
    }

    /// Has somebody else run the programs of some images.
    pub fn outside_programs(mut self, programs: Arc<dyn OutsidePrograms>) -> Self {
        self.outside = Some(programs);
        self
    }

    /// How long things take on the nodes.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// The timings of pods of these names, where they differ from their nodes': that of the first pod of a name, of the second, and
    /// so on. Further pods of the name have the last one's; none stands for the node's.
    pub fn pod_timings(mut self, timings: BTreeMap<String, Vec<Option<Timing>>>) -> Self {
        self.pod_timings = timings;
        self
    }

    /// Whether nodes and controllers leave out the waits that real ones make for reasons of their own: nodes have the timing
    /// [`Timing::quick`] (call [`timing`](Self::timing) after this for another), namespaces are emptied at once, and Jobs act on
    /// changes and try again within milliseconds. For a cluster in real time, as `serve` has it; in virtual time these waits cost
    /// nothing.
    pub fn quick(mut self, quick: bool) -> Self {
        self.quick = quick;
        if quick {
            self.timing = Timing::quick();
        }
        self
    }

    /// Whether there is a default StorageClass `standard`, as clusters of kind and minikube have one. Its volumes are made once
    /// a pod uses their claim.
    pub fn default_storage_class(mut self, make: bool) -> Self {
        self.storage_class = make;
        self
    }

    /// How long events live after they were last written; by default an hour.
    pub fn event_life(mut self, life: Duration) -> Self {
        self.event_life = life;
        self
    }

    /// The signer of certificates; by default an authority of this cluster's own.
    pub fn authority(mut self, authority: Option<Arc<Authority>>) -> Self {
        self.authority = authority.or(self.authority);
        self
    }

    /// The source of generated names; by default the seed's.
    pub fn names(mut self, names: SharedNames) -> Self {
        self.names = Some(names);
        self
    }

    /// Creates an object (such as a CustomResourceDefinition) when the cluster starts.
    pub fn object(mut self, object: impl Into<Value>) -> Self {
        self.objects.push(object.into());
        self
    }

    /// Registers a webhook of this process.
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.push(webhook);
        self
    }

    /// Whether the built-in controllers run (they do by default).
    pub fn controllers(mut self, run: bool) -> Self {
        self.controllers = if run {
            ControllerSet::all()
        } else {
            ControllerSet::none()
        };
        self
    }

    /// Which of the controllers of workloads, services, volumes and nodes run (all by default).
    pub fn built_in(mut self, which: &[BuiltIn]) -> Self {
        self.controllers = self.controllers.with_built_in(which);
        self
    }

    /// Exactly these built-in controllers run.
    pub fn controller_set(mut self, which: ControllerSet) -> Self {
        self.controllers = which;
        self
    }

    /// Keeps the objects in a directory: a cluster that is started with it again continues with them.
    pub fn data_dir(mut self, directory: PathBuf) -> Self {
        self.data_dir = Some(directory);
        self
    }

    /// Whether the server begins with all objects that a real one makes for itself: default roles and bindings, flow control,
    /// the `kubernetes` service. By default it has the roles of everybody alone, by which users see which kinds are served.
    pub fn system_objects(mut self, make: bool) -> Self {
        self.system_objects = make;
        self
    }

    /// The certificate that the server shows to the API servers that APIServices name. Their ConfigMap
    /// `kube-system/extension-apiserver-authentication` is there then; without it there is none.
    pub fn front_proxy(mut self, proxy: Option<Arc<FrontProxy>>) -> Self {
        self.front_proxy = proxy;
        self
    }

    /// Whether the API `metrics.k8s.io` is there, as with metrics-server: the figures are those of the annotations
    /// `metrics.fake-apiserver/cpu` and `metrics.fake-apiserver/memory` of pods.
    pub fn metrics_api(mut self, serve: bool) -> Self {
        self.metrics_api = serve;
        self
    }

    /// How often each node renews its Lease. By default never, and there is none: a node counts as alive until
    /// [`Cluster::disconnect_node`] cuts it off, and its heartbeats cost nothing.
    pub fn heartbeats(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period);
        self
    }

    /// Whether nodes tell [`Cluster::agenda`] what they wait for, as built-in controllers always do.
    pub fn agenda(mut self, tell: bool) -> Self {
        self.agenda = tell;
        self
    }

    /// Whether every commit is recorded for [`Cluster::trace`].
    pub fn trace(mut self, record: bool) -> Self {
        self.trace = record;
        self
    }

    /// Starts the cluster and waits until it has come to rest. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If an object that it is to begin with is refused.
    #[must_use]
    pub fn start(self) -> BoxFuture<'static, Result<Cluster, ClusterError>> {
        Box::pin(self.started())
    }
}
