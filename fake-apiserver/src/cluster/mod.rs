//! The whole in-process thing: server, nodes, built-in controllers, clock, seed.

mod bootstrap;
mod builder;
mod error;
mod flow_control;
mod flow_schemas;
mod front_proxy;
mod registrations;
mod selection;
mod simulated_nodes;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use client_kit::{Agenda, Seed, SharedClock, SharedNames};
use futures::future::BoxFuture;
use tokio::task::JoinSet;

pub use builder::ClusterBuilder;
pub use error::ClusterError;
use network::Network;
use nodes::{ImageRegistry, NodeSpec, Switch, renew_lease};
pub use selection::{ControllerSet, UnknownController};
use server::Server;
use server::faults::Faults;
use simulated_nodes::SimulatedNodes;
use store::Journal;
pub use trace::Trace;

/// A Kubernetes cluster inside this process.
///
/// It runs on the current tokio runtime. On a single-threaded runtime with a paused clock its time is virtual: it jumps to
/// the next timer when nothing is runnable, so that thirty seconds of `minReadySeconds` cost nothing.
///
/// Dropping the cluster stops everything that runs in it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use fake_apiserver::Cluster;
/// use k8s_openapi::api::core::v1::{Namespace, Pod};
/// use kube::api::{Api, PostParams};
/// use std::time::Duration;
///
/// let cluster = Cluster::builder().seed(7).nodes(1).start().await?;
/// let pods: Api<Pod> = Api::default_namespaced(cluster.client());
/// let pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"},
///     "spec": {"containers": [{"name": "nginx", "image": "nginx:alpine"}]},
/// }))?;
/// pods.create(&PostParams::default(), &pod).await?;
/// cluster.run_for(Duration::from_secs(5)).await;
/// let phase = pods.get("web").await?.status.and_then(|status| status.phase);
/// assert_eq!(phase.as_deref(), Some("Running"));
/// # let _ = Api::<Namespace>::all(cluster.client());
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    server: Server,
    clock: SharedClock,
    names: SharedNames,
    seed: Seed,
    images: ImageRegistry,
    network: Network,
    trace: Option<Arc<Trace>>,
    nodes: Box<SimulatedNodes>,
    journal: Option<Arc<Journal>>,
    agenda: Agenda,
    /// Aborts its tasks when dropped.
    _tasks: JoinSet<()>,
}

impl Cluster {
    /// A cluster to be: three nodes, seed 0, all built-in controllers.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// A client of the cluster's API server.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.server.client()
    }

    /// A client that is this user and has the rights of its roles alone: for a controller, to see that its role suffices.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fake_apiserver::Cluster;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::api::{Api, ListParams};
    /// let cluster = Cluster::builder().start().await?;
    /// let client = cluster.client_as("system:serviceaccount:default:operator");
    /// let refused = Api::<Pod>::default_namespaced(client).list(&ListParams::default()).await;
    /// assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403)); // it has no role
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn client_as(&self, user: &str) -> kube::Client {
        self.server.acting_as(user).client()
    }

    /// The API server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The faults that a test adds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fake_apiserver::Cluster;
    /// # use fake_apiserver::faults::{Effect, Fault, Requests};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::api::{Api, PostParams};
    /// let cluster = Cluster::builder().start().await?;
    /// let creations = Requests::all().verbs(["create"]).resources(["configmaps"]);
    /// let lost = cluster.faults().add(Fault::new(Effect::LoseAnswer).on(creations).times(1));
    /// let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    /// let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "settings"}}))?;
    /// let told = maps.create(&PostParams::default(), &map).await;
    /// assert!(matches!(told, Err(kube::Error::Api(status)) if status.code == 504)); // says the server, and yet:
    /// assert!(maps.get("settings").await.is_ok());
    /// assert_eq!(lost.strikes(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn faults(&self) -> &Faults {
        self.server.faults()
    }

    /// The cluster's clock: where every timestamp in it comes from.
    #[must_use]
    pub fn clock(&self) -> SharedClock {
        Arc::clone(&self.clock)
    }

    /// What the built-in controllers wait for; and the nodes, if [they are to tell](ClusterBuilder::agenda).
    #[must_use]
    pub fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    /// Where the commits are written down, for a cluster with a [data directory](ClusterBuilder::data_dir).
    #[must_use]
    pub fn journal(&self) -> Option<Arc<Journal>> {
        self.journal.clone()
    }

    /// The source of generated names, for controllers that name objects themselves.
    #[must_use]
    pub fn names(&self) -> SharedNames {
        Arc::clone(&self.names)
    }

    /// The seed that the run is a function of.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The images that the nodes can run.
    #[must_use]
    pub fn images(&self) -> &ImageRegistry {
        &self.images
    }

    /// The network of nodes and pods, and its faults.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Every commit so far, if [`ClusterBuilder::trace`] was asked for.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// Lets a node join: it registers itself, and gets pods. Its addresses should be its own, as those of
    /// [`NodeSpec::numbered`] are for each number.
    ///
    /// A machine that goes for good is [cut off](Self::disconnect_node), and a client deletes its Node.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fake_apiserver::Cluster;
    /// # use fake_apiserver::nodes::NodeSpec;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::api::{Api, PostParams};
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let cluster = Cluster::builder().nodes(1).start().await?;
    /// let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    /// let large = serde_json::from_value(json!({"metadata": {"name": "large"}, "spec": {"containers": [
    ///     {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "12"}}}]}}))?;
    /// pods.create(&PostParams::default(), &large).await?;
    /// let node = async || Ok::<_, kube::Error>(pods.get("large").await?.spec.and_then(|spec| spec.node_name));
    /// cluster.run_for(Duration::from_secs(10)).await;
    /// assert_eq!(node().await?, None); // the node has eight cores
    /// cluster.add_node(NodeSpec { cpu: 16, ..NodeSpec::numbered(2) })?;
    /// cluster.run_for(Duration::from_secs(10)).await;
    /// assert_eq!(node().await?.as_deref(), Some("node2"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is a simulated node of this name already.
    pub fn add_node(&self, node: NodeSpec) -> Result<(), ClusterError> {
        let joined = self.nodes.join(vec![node]);
        joined.map_err(|name| ClusterError::NodeExists { name })
    }

    /// Cuts a node off: its kubelet hears nothing and its requests wait, while its containers go on. After fifty seconds
    /// the node controller takes the node for lost, and 300 s after that it evicts the pods that tolerate it no longer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use fake_apiserver::Cluster;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kube::api::{Api, PostParams};
    /// # use serde_json::json;
    /// # use std::time::Duration;
    /// let cluster = Cluster::builder().nodes(3).start().await?;
    /// let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    /// let web = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {
    ///     "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
    ///     "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}}}))?;
    /// deployments.create(&PostParams::default(), &web).await?;
    /// let ready = async || Ok::<_, kube::Error>(deployments.get("web").await?.status.and_then(|status| status.ready_replicas));
    /// cluster.run_for(Duration::from_secs(10)).await;
    /// assert_eq!(ready().await?, Some(3));
    /// cluster.disconnect_node("node2").await?;
    /// cluster.run_for(Duration::from_secs(60)).await; // the node counts as lost, and its pod as not ready
    /// assert_eq!(ready().await?, Some(2));
    /// cluster.run_for(Duration::from_secs(360)).await; // the pod was evicted, and another runs elsewhere
    /// assert_eq!(ready().await?, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If there is no such simulated node, or its Lease cannot be written.
    pub fn disconnect_node<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ClusterError>> {
        Box::pin(self.disconnected(name))
    }

    async fn disconnected(&self, name: &str) -> Result<(), ClusterError> {
        let switch = self.switch(name)?;
        if !self.nodes.have_heartbeats() {
            // The last heartbeat of a node whose heartbeats are not played.
            let renewed = renew_lease(&self.client(), name, self.clock.now()).await;
            renewed.map_err(|source| ClusterError::Lease {
                name: name.to_owned(),
                source: Box::new(source),
            })?;
        }
        switch.set(false);
        Ok(())
    }

    /// Connects a node again: it becomes ready, and gets the events that it has missed.
    ///
    /// # Errors
    /// If there is no such simulated node.
    pub fn reconnect_node(&self, name: &str) -> Result<(), ClusterError> {
        self.switch(name)?.set(true);
        Ok(())
    }

    fn switch(&self, name: &str) -> Result<Switch, ClusterError> {
        self.nodes.switch(name).ok_or_else(|| ClusterError::UnknownNode {
            name: name.to_owned(),
            known: self.nodes.names().join(", "),
        })
    }

    /// Runs until nothing is runnable before the next timer. Takes a millisecond of virtual time.
    pub async fn settle(&self) {
        // The paused clock moves only when no task can run, so when this timer fires all others have come to rest.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Runs for a time.
    pub async fn run_for(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        // What was due at the same instant runs before this returns.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }
}
