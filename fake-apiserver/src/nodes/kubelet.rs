//! The kubelet of a simulated node: watches its pods and gives each a worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, JsonChange, Random, Seed, SharedClock, watch_json};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::access::NodeAccess;
use super::containers::Containers;
use super::heartbeat;
use super::images::ImageRegistry;
use super::link::{Connected, Switch};
use super::node::NodeSpec;
use super::pod::PodWorker;
use super::timing::Timing;
use crate::meta::ObjectMeta as _;
use crate::server::rfc3339;

/// A simulated node.
pub struct Kubelet {
    pub(super) client: Client,
    pub(super) spec: NodeSpec,
    pub(super) clock: SharedClock,
    pub(super) images: ImageRegistry,
    timing: Timing,
    pod_timings: Arc<BTreeMap<String, Timing>>,
    pub(super) recorder: EventRecorder,
    /// What runs here, for those who ask.
    pub(super) access: NodeAccess,
    /// Where others may look at what runs here, if anybody does.
    pub(super) containers: Option<Containers>,
    /// When it came up: what it does every second beats from here.
    pub(super) started: Instant,
    seed: Seed,
    /// How often it says that it is alive; none if nobody has to be told.
    heartbeat: Option<Duration>,
    connected: Connected,
}

/// A pod's worker: the newest pod goes in here.
type Mailbox = watch::Sender<Arc<Value>>;

impl Kubelet {
    /// A kubelet for `spec`. Must be made within a tokio runtime.
    #[must_use]
    pub fn new(
        client: Client,
        spec: NodeSpec,
        clock: SharedClock,
        seed: Seed,
        images: ImageRegistry,
        timing: Timing,
    ) -> Self {
        let recorder = EventRecorder::new(client.clone(), "kubelet", Some(&spec.name), clock.clone())
            .with_reporting(true);
        let seed = seed.fork("kubelet").fork(&spec.name);
        Self {
            client,
            spec,
            clock,
            images,
            timing,
            pod_timings: Arc::default(),
            recorder,
            access: NodeAccess::default(),
            containers: None,
            started: Instant::now(),
            seed,
            heartbeat: None,
            connected: Connected::always(),
        }
    }

    /// Renews the node's Lease and checks its condition `Ready` this often (a real kubelet: every ten seconds), for
    /// controllers that take a silent node for a lost one. Without it there is no Lease.
    #[must_use]
    pub fn with_heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period);
        self
    }

    /// The connection that `client` uses.
    pub(crate) fn with_switch(mut self, switch: &Switch) -> Self {
        self.connected = switch.watch();
        self
    }

    /// How long things take for pods of these names.
    pub(crate) fn with_pod_timings(mut self, timings: Arc<BTreeMap<String, Timing>>) -> Self {
        self.pod_timings = timings;
        self
    }

    /// How long things take here for the pod of this name.
    pub(super) fn timing(&self, pod: &str) -> &Timing {
        self.pod_timings.get(pod).unwrap_or(&self.timing)
    }

    /// The way to what runs on the node: logs, commands, ports. What a real kubelet serves on its own port.
    #[must_use]
    pub fn access(&self) -> NodeAccess {
        self.access.clone()
    }

    /// The same kubelet, which tells `containers` what runs.
    #[must_use]
    pub fn with_containers(mut self, containers: Option<Containers>) -> Self {
        self.containers = containers;
        self
    }

    /// Registers the node and runs its pods, until dropped.
    ///
    /// # Errors
    /// If the node cannot be registered.
    pub async fn run(mut self) -> Result<(), kube::Error> {
        self.register().await?;
        let mut connected = std::mem::replace(&mut self.connected, Connected::always());
        let mut heartbeats = self.heartbeat.map(|period| {
            let mut interval = tokio::time::interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        let kubelet = Arc::new(self);
        let query = format!("fieldSelector=spec.nodeName%3D{}", kubelet.spec.name);
        let mut pods = watch_json(kubelet.client.clone(), "/api/v1/pods", &query, false);
        let mut workers: BTreeMap<String, Mailbox> = BTreeMap::new();
        let mut addresses = Addresses {
            network: kubelet.spec.pod_network.clone(),
            next: 2,
        };
        loop {
            tokio::select! {
                biased;
                () = connected.restored() => kubelet.alive().await,
                () = tick(&mut heartbeats) => kubelet.alive().await,
                change = pods.next() => {
                    let Some(change) = change else { return Ok(()) };
                    connected.hold().await;
                    match change {
                        JsonChange::Present(pod) => kubelet.update(&mut workers, &mut addresses, pod),
                        JsonChange::Gone(pod) => {
                            if let Some(containers) = &kubelet.containers {
                                containers.forget(pod.uid());
                            }
                            workers.remove(pod.uid());
                        }
                        JsonChange::Synced => {}
                    }
                }
            }
        }
    }

    /// Says that the node is alive; the next heartbeat mends what fails.
    async fn alive(&self) {
        let (client, node, now) = (&self.client, &self.spec.name, self.clock.now());
        let lease = match self.heartbeat {
            Some(_) => heartbeat::renew(client, node, now).await,
            None => heartbeat::give_up(client, node).await,
        };
        let told = match lease {
            Ok(()) => heartbeat::report_ready(client, node, now).await,
            Err(error) => Err(error),
        };
        if let Err(error) = told {
            tracing::warn!(%error, node, "say that a node is alive");
        }
    }

    async fn register(&self) -> Result<(), kube::Error> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let nodes: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let object = self.spec.object(&rfc3339(self.clock.now_seconds()));
        let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        match nodes.create(&PostParams::default(), &object).await {
            // A node that restarts finds itself registered.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn update(
        self: &Arc<Self>,
        workers: &mut BTreeMap<String, Mailbox>,
        addresses: &mut Addresses,
        pod: Value,
    ) {
        let uid = pod.uid().to_owned();
        let pod = Arc::new(pod);
        match workers.get(&uid) {
            Some(mailbox) => {
                mailbox.send_replace(pod);
            }
            None => {
                let (mailbox, inbox) = watch::channel(Arc::clone(&pod));
                let random: Random = self.seed.fork(&pod_name(&pod)).random();
                let worker = PodWorker::new(Arc::clone(self), inbox, addresses.take(), random);
                tokio::spawn(worker.run());
                workers.insert(uid, mailbox);
            }
        }
    }
}

/// Waits for the next heartbeat, if there are any.
async fn tick(heartbeats: &mut Option<Interval>) {
    match heartbeats {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn pod_name(pod: &Value) -> String {
    format!("{}/{}", pod.namespace(), pod.name())
}

struct Addresses {
    network: String,
    next: u32,
}

impl Addresses {
    fn take(&mut self) -> String {
        let address = format!("{}.{}", self.network, self.next);
        self.next = if self.next >= 254 { 2 } else { self.next + 1 };
        address
    }
}
