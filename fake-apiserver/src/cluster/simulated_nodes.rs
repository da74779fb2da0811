//! The simulated nodes of a cluster, those that join later among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{Agenda, Seed, SharedClock};
use network::Network;
use nodes::{
    ContainerPrograms, Containers, Disks, ImageRegistry, Kubelet, NodeSpec, OutsidePrograms, PodTimings,
    Scheduler, ServiceProxy, Switch, Timing,
};
use server::{Component, Server};
use tokio::task::JoinSet;

/// What the nodes of a cluster have in common.
pub(super) struct Common {
    pub server: Server,
    pub clock: SharedClock,
    pub seed: Seed,
    pub network: Network,
    pub images: ImageRegistry,
    pub timing: Timing,
    pub pod_timings: Arc<PodTimings>,
    pub disks: Disks,
    pub containers: Option<Containers>,
    pub outside: Option<Arc<dyn OutsidePrograms>>,
    pub programs: ContainerPrograms,
    pub heartbeat: Option<Duration>,
    /// Where the nodes say what they wait for, if they do.
    pub agenda: Option<Agenda>,
    /// The nodes to which pods of these names go.
    pub placements: BTreeMap<String, String>,
}

/// The nodes.
pub(super) struct SimulatedNodes {
    common: Common,
    joined: Mutex<Joined>,
}

#[derive(Default)]
struct Joined {
    /// The connections of the nodes, by name.
    switches: BTreeMap<String, Switch>,
    /// Aborts its tasks when dropped.
    tasks: JoinSet<()>,
}

impl SimulatedNodes {
    pub(super) fn new(common: Common) -> Self {
        Self {
            common,
            joined: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Joined> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The switch of a node's connection.
    pub(super) fn switch(&self, name: &str) -> Option<Switch> {
        self.lock().switches.get(name).cloned()
    }

    /// The nodes' names, in alphabetical order.
    pub(super) fn names(&self) -> Vec<String> {
        self.lock().switches.keys().cloned().collect()
    }

    /// Whether the kubelets renew their leases.
    pub(super) fn have_heartbeats(&self) -> bool {
        self.common.heartbeat.is_some()
    }

    /// Starts nodes; with the first ones also the scheduler and what keeps the network's Services. Gives the name of one that is there
    /// already: it is not started, and none after it.
    pub(super) fn join(&self, nodes: Vec<NodeSpec>) -> Result<(), String> {
        let mut joined = self.lock();
        for node in nodes {
            if joined.switches.contains_key(&node.name) {
                return Err(node.name);
            }
            if joined.switches.is_empty() {
                self.start_programs(&mut joined.tasks);
            }
            let switch = Switch::default();
            joined.switches.insert(node.name.clone(), switch.clone());
            self.start_kubelet(&mut joined.tasks, node, &switch);
        }
        Ok(())
    }

    fn start_programs(&self, tasks: &mut JoinSet<()>) {
        let common = &self.common;
        let server = &common.server;
        server.report_running(Component::Scheduler);
        let proxy = ServiceProxy::new(server.client_named("kube-proxy"), &common.network);
        tasks.spawn(proxy.run());
        let scheduler = Scheduler::new(server.objects_named("kube-scheduler"), Arc::clone(&common.clock));
        tasks.spawn(scheduler.with_placements(common.placements.clone()).run());
    }

    fn start_kubelet(&self, tasks: &mut JoinSet<()>, node: NodeSpec, switch: &Switch) {
        let common = &self.common;
        let server = &common.server;
        let name = node.name.clone();
        let mut kubelet = Kubelet::new(
            switch.client(server.named("kubelet")),
            node,
            Arc::clone(&common.clock),
            common.seed,
            common.images.clone(),
            common.timing.clone(),
        )
        .with_switch(switch)
        .with_disks(common.disks.clone())
        .with_network(&common.network)
        .with_pod_timings(Arc::clone(&common.pod_timings))
        .with_containers(common.containers.clone())
        .with_outside(common.outside.clone())
        .with_programs(common.programs.clone())
        .with_jumps(server.jumps());
        if let Some(agenda) = &common.agenda {
            kubelet = kubelet.with_agenda(agenda);
        }
        if let Some(period) = common.heartbeat {
            kubelet = kubelet.with_heartbeat(period);
        }
        server.connect_node(&name, kubelet.access());
        tasks.spawn(async move {
            if let Err(error) = kubelet.run().await {
                tracing::warn!(%error, "run a node");
            }
        });
    }
}
