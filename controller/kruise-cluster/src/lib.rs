//! OpenKruise on a Kubernetes cluster inside a test.
//!
//! [`OpenKruise::start`] starts a [`fake_apiserver::Cluster`] with OpenKruise's definitions, webhooks, manager and daemons. All of it
//! is in the test's process, on its clock, and a function of its seed. The types are those of the crate `kruise-api`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use fake_apiserver::Cluster;
//! use k8s_openapi::api::core::v1::Pod;
//! use kruise_api::v1alpha1::CloneSet;
//! use kruise_cluster::OpenKruise;
//! use kube::Api;
//! use kube::api::{ListParams, PostParams};
//!
//! let cluster = OpenKruise::default().start(Cluster::builder().nodes(3)).await?;
//! let sets: Api<CloneSet> = Api::default_namespaced(cluster.client());
//! let set: CloneSet = serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "demo"},
//!     "spec": {
//!         "replicas": 5,
//!         "selector": {"matchLabels": {"app": "demo"}},
//!         "template": {
//!             "metadata": {"labels": {"app": "demo"}},
//!             "spec": {"containers": [{"name": "nginx", "image": "nginx:1.7.9"}]},
//!         },
//!     },
//! }))?;
//! sets.create(&PostParams::default(), &set).await?;
//! cluster.run_for(Duration::from_secs(30)).await; // takes no real time
//! let pods: Api<Pod> = Api::default_namespaced(cluster.client());
//! assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 5);
//! # Ok(())
//! # }
//! ```

mod daemons;
mod images;
mod webhooks;

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client_kit::SharedNames;
use controller::gates::FeatureGates;
use controller::metrics::Metrics;
use controller::process::install::{self, NAMESPACE};
use controller::process::install_daemon;
use controller::webhook::Shared;
use controller::workloads::Settings;
use controller::{Manager, Options};
use fake_apiserver::nodes::{Containers, NodeSpec};
use fake_apiserver::{Cluster, ClusterBuilder, ClusterError, Server};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use shared_json::json;
use tokio::task::JoinSet;

pub use controller;
pub use daemons::start as start_daemons;
pub use fake_apiserver;

use self::webhooks::{LateClock, webhooks};

/// How long a set rests between two passes. Here requests take no time; on a real cluster a pass takes about this long.
const PASS_REST: Duration = Duration::from_millis(10);

/// The namespace of the Secrets for the daemon.
const DAEMON_NAMESPACE: &str = "kruise-daemon-config";

/// The manager's user agent.
const MANAGER: &str = "kruise-manager";

/// A change of the manager's options before it starts.
type Change = Box<dyn FnOnce(Options) -> Options + Send>;

/// The manager's client of a server.
type Connect = Box<dyn FnOnce(Server) -> Client + Send>;

/// A cluster with OpenKruise that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The cluster refuses its initial objects.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The nodes for the daemons cannot be listed.
    #[error("list the nodes: {0}")]
    Nodes(#[from] kube::Error),
}

/// OpenKruise, to be started together with a cluster: definitions, webhooks, manager and a daemon on each node.
///
/// Manager, webhooks and daemons have the rights of their roles alone, as on a real cluster.
#[must_use = "it starts nothing by itself"]
pub struct OpenKruise {
    gates: FeatureGates,
    daemons: bool,
    names: Option<SharedNames>,
    change: Change,
    connect: Connect,
}

impl Default for OpenKruise {
    fn default() -> Self {
        Self {
            gates: FeatureGates::default(),
            daemons: true,
            names: None,
            change: Box::new(|options| options),
            connect: Box::new(|server| server.client()),
        }
    }
}

impl OpenKruise {
    /// The feature gates, as `FeatureGates::parse` reads the flag `--feature-gates`; OpenKruise 1.9's defaults unless said otherwise.
    pub fn gates(mut self, gates: FeatureGates) -> Self {
        self.gates = gates;
        self
    }

    /// Whether each node has OpenKruise's daemon, which pulls images, restarts containers and probes them. It has unless said
    /// otherwise.
    pub fn daemons(mut self, run: bool) -> Self {
        self.daemons = run;
        self
    }

    /// Where the ids of the pods come from that the manager makes; from the cluster's seed unless said otherwise.
    pub fn names(mut self, names: SharedNames) -> Self {
        self.names = Some(names);
        self
    }

    /// Changes the manager's options before it starts: flags of the kinds, or rules of CloneSets that a test breaks.
    pub fn options(mut self, change: impl FnOnce(Options) -> Options + Send + 'static) -> Self {
        self.change = Box::new(change);
        self
    }

    /// Makes the manager's client of the server, which has the name and the rights of the manager already; `Server::client` unless
    /// said otherwise. A test that delays or refuses the manager's requests does so here.
    pub fn connect(mut self, connect: impl FnOnce(Server) -> Client + Send + 'static) -> Self {
        self.connect = Box::new(connect);
        self
    }

    /// Starts the cluster with OpenKruise.
    ///
    /// # Errors
    /// If the cluster refuses its initial objects, or does not list its nodes.
    pub fn start(self, builder: ClusterBuilder) -> BoxFuture<'static, Result<KruiseCluster, StartError>> {
        self.begin(builder).boxed()
    }

    async fn begin(self, mut builder: ClusterBuilder) -> Result<KruiseCluster, StartError> {
        let gates = self.gates;
        for definition in controller::crds(&gates) {
            builder = builder.object(definition);
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        builder = builder.object(namespace);
        for object in install::access(NAMESPACE, &gates) {
            builder = builder.object(object);
        }
        let containers = self.daemons.then(Containers::default);
        if let Some(containers) = &containers {
            builder = builder.containers(containers.clone());
            for object in install_daemon::objects(NAMESPACE, DAEMON_NAMESPACE) {
                builder = builder.object(object);
            }
        }
        let clock = LateClock::default();
        let (metrics, shared) = (Arc::<Metrics>::default(), Shared::default());
        for webhook in webhooks(&gates, &clock, &metrics, &shared) {
            builder = builder.webhook(webhook);
        }
        let cluster = builder.start().await?;
        clock.get_or_init(|| cluster.clock());
        let options = (self.change)(Options {
            // Each node has had its list of images for long.
            settings: Settings::from([("nodeimage-creation-delay", "0s".to_owned())]),
            clock: cluster.clock(),
            names: self.names.unwrap_or_else(|| cluster.names()),
            rest: PASS_REST,
            gates: gates.clone(),
            metrics,
            shared,
            ..Options::default()
        });
        let server = cluster
            .server()
            .named(MANAGER)
            // It has the rights of its role alone, so that a right that the role lacks shows.
            .acting_as(&install::user(NAMESPACE));
        let manager = Manager::new((self.connect)(server), options);
        let mut tasks = JoinSet::new();
        tasks.spawn(manager.run(std::future::pending::<()>()));
        let kruise = KruiseCluster {
            cluster,
            containers,
            gates,
            tasks: Mutex::new(tasks),
        };
        let nodes: Api<Node> = Api::all(kruise.client());
        let nodes = nodes.list(&ListParams::default()).await?;
        let names: Vec<String> = nodes.iter().map(kube::ResourceExt::name_any).collect();
        kruise.start_daemons(&names);
        Ok(kruise)
    }
}

/// A cluster on which OpenKruise runs. It can be used as the [`Cluster`] that it is.
///
/// Dropping it stops everything that runs in it.
pub struct KruiseCluster {
    cluster: Cluster,
    /// The nodes' containers, if daemons look at them.
    containers: Option<Containers>,
    gates: FeatureGates,
    /// Aborts manager and daemons when dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl KruiseCluster {
    /// Lets a node join, with a daemon as the others have one.
    ///
    /// # Errors
    /// If there is a simulated node of this name already.
    pub fn add_node(&self, node: NodeSpec) -> Result<(), ClusterError> {
        let name = node.name.clone();
        self.cluster.add_node(node)?;
        self.start_daemons(&[name]);
        Ok(())
    }

    /// Starts daemons on the nodes of these names, if nodes have some.
    fn start_daemons(&self, nodes: &[String]) {
        let Some(containers) = &self.containers else {
            return;
        };
        let client = self.cluster.client_as(&install_daemon::user(NAMESPACE));
        let place = (&client, &self.cluster.clock());
        let images = self.cluster.images();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        daemons::start(&mut tasks, place, (containers, images), &self.gates, nodes);
    }
}

impl Deref for KruiseCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}
