//! The start of a cluster: its server, then the clients that make it a cluster.

use std::sync::Arc;

use client_kit::{Agenda, SeededNames, SharedClock, SharedNames, TokioClock};
use controllers::{
    ControllerManager, CustomResourceCleanup, GarbageCollector, NamespaceController, ServiceAccountController,
};
use network::Network;
use nodes::{Disks, PodTimings};
use pki::Authority;
use server::{Component, Server};
use store::{Journal, Store};
use tokio::task::JoinSet;

use super::ClusterBuilder;
use crate::cluster::bootstrap::{bootstrap, default_storage_class, define_custom_resources, system_objects};
use crate::cluster::error::ClusterError;
use crate::cluster::flow_control::maintain;
use crate::cluster::flow_schemas;
use crate::cluster::simulated_nodes::{Common, SimulatedNodes};
use crate::cluster::{Cluster, ControllerSet, Trace, front_proxy, registrations};
use crate::metrics_api;

const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The parts of a cluster that starts.
struct Starting {
    server: Server,
    clock: SharedClock,
    names: SharedNames,
    journal: Option<Arc<Journal>>,
    /// Whether the server continues with stored objects.
    again: bool,
    network: Network,
    agenda: Agenda,
    tasks: JoinSet<()>,
}

impl ClusterBuilder {
    pub(super) async fn started(mut self) -> Result<Cluster, ClusterError> {
        let mut starting = self.server()?;
        let trace = self
            .trace
            .then(|| Trace::of(starting.server.store(), Arc::clone(&starting.clock)));
        self.fill(&starting).await?;
        self.start_server_tasks(&mut starting);
        self.start_controllers(&mut starting);
        let nodes = self.start_nodes(&starting)?;
        let cluster = Cluster {
            server: starting.server,
            clock: starting.clock,
            names: starting.names,
            seed: self.seed,
            images: self.images,
            network: starting.network,
            trace,
            nodes: Box::new(nodes),
            journal: starting.journal,
            agenda: starting.agenda,
            _tasks: starting.tasks,
        };
        cluster.settle().await;
        Ok(cluster)
    }

    /// The server, empty or with what its data directory holds.
    fn server(&mut self) -> Result<Starting, ClusterError> {
        let clock: SharedClock = Arc::new(TokioClock::starting_at(self.start));
        let store = Store::new();
        let (journal, again) = match &self.data_dir {
            Some(directory) => {
                let (journal, again) = Journal::open(directory, &store)?;
                (Some(journal), again)
            }
            None => (None, false),
        };
        // What is drawn now must not be what was drawn before the end.
        let drawn = if again {
            self.seed.fork(&format!("after {}", store.revision()))
        } else {
            self.seed
        };
        let names = self
            .names
            .take()
            .unwrap_or_else(|| Arc::new(SeededNames::new(drawn.fork("names"))));
        let webhooks = std::mem::take(&mut self.webhooks);
        let server = Server::with_store(store, Arc::clone(&clock), self.seed, Arc::clone(&names), webhooks);
        if again {
            server.reseed(drawn);
            define_custom_resources(&server)?;
        }
        let network = Network::new(self.seed);
        server.connect_network(&network);
        Ok(Starting {
            server,
            clock,
            names,
            journal,
            again,
            network,
            agenda: Agenda::default(),
            tasks: JoinSet::new(),
        })
    }

    /// Makes the objects that are there from the start.
    async fn fill(&mut self, starting: &Starting) -> Result<(), ClusterError> {
        let (server, client) = (&starting.server, starting.server.client());
        if self.storage_class && !starting.again {
            self.objects.insert(0, default_storage_class());
        }
        if self.metrics_api {
            let objects = metrics_api::install(server, Arc::clone(&starting.clock));
            self.objects.extend(objects);
        }
        bootstrap(&client, &self.objects, starting.again).await?;
        if let Some(proxy) = &self.front_proxy {
            front_proxy::publish(&client, self.authority.as_deref(), proxy).await?;
            server.show_to_extensions(Arc::clone(proxy));
        }
        system_objects(server, self.system_objects);
        Ok(())
    }

    /// Starts what is part of the API server.
    fn start_server_tasks(&self, starting: &mut Starting) {
        let (server, tasks) = (&starting.server, &mut starting.tasks);
        tasks.spawn(CustomResourceCleanup::new(server.client_named("kube-apiserver")).run());
        tasks.spawn(server.expire_events(self.event_life));
        tasks.spawn(server.retire_history());
        tasks.spawn(server.check_extensions());
        if self.system_objects {
            tasks.spawn(maintain(server.client_named("kube-apiserver")));
            let reports =
                flow_schemas::report(server.client_named("kube-apiserver"), Arc::clone(&starting.clock));
            tasks.spawn(reports);
            tasks.spawn(registrations::maintain(server.clone()));
        }
    }

    /// Starts the built-in controllers.
    fn start_controllers(&self, starting: &mut Starting) {
        let (server, tasks) = (&starting.server, &mut starting.tasks);
        let clock = || Arc::clone(&starting.clock);
        if self.controllers != ControllerSet::none() {
            server.report_running(Component::ControllerManager);
        }
        let manager = server.client_named(CONTROLLER_MANAGER);
        if self.controllers.has_service_accounts() {
            let bundle = self.authority.as_ref().and_then(|authority| authority.pem());
            let controller = ServiceAccountController::new(manager.clone());
            tasks.spawn(controller.with_bundle(bundle.unwrap_or_default()).run());
        }
        if self.controllers.has_namespaces() {
            let controller = NamespaceController::new(manager.clone(), clock());
            tasks.spawn(controller.quick(self.quick).run());
        }
        if self.controllers.has_garbage() {
            tasks.spawn(GarbageCollector::new(manager, clock()).run());
        }
        let built_in = self.controllers.built_in();
        if built_in.is_empty() {
            return;
        }
        let authority = self.authority.clone();
        let authority = authority.or_else(|| Authority::of_seed(self.seed).map(Arc::new));
        let controllers =
            ControllerManager::new(server.objects_named(CONTROLLER_MANAGER), clock(), &built_in)
                .with_authority(authority)
                .quick(self.quick)
                .with_agenda(&starting.agenda);
        tasks.spawn(controllers.run());
    }

    /// Starts the nodes, and what runs where there are some.
    ///
    /// # Errors
    /// If two have the same name.
    fn start_nodes(&mut self, starting: &Starting) -> Result<SimulatedNodes, ClusterError> {
        let nodes = SimulatedNodes::new(Common {
            server: starting.server.clone(),
            clock: Arc::clone(&starting.clock),
            seed: self.seed,
            network: starting.network.clone(),
            images: self.images.clone(),
            timing: self.timing.clone(),
            pod_timings: Arc::new(PodTimings::new(std::mem::take(&mut self.pod_timings))),
            disks: Disks::default(),
            containers: self.containers.clone(),
            outside: self.outside.clone(),
            programs: self.programs.clone(),
            heartbeat: self.heartbeat,
            agenda: self.agenda.then(|| starting.agenda.clone()),
            placements: std::mem::take(&mut self.placements),
        });
        let joined = nodes.join(std::mem::take(&mut self.nodes));
        joined.map_err(|name| ClusterError::NodeExists { name })?;
        Ok(nodes)
    }
}
