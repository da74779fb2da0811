//! The kubelet of a simulated node: watches its pods and gives each a worker.

mod pod;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{
    Agenda, Desk, Due, EventRecorder, EventType, JsonChange, Jumps, ObjectClient, Random, Seed, SharedClock,
    watch_json, watch_metadata,
};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::{Count, Insufficient, amounts, insufficient, requests};
use machinery::types::rfc3339;
use network::Network;
use shared_json::{Text, Value};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use pod::PodWorker;

use crate::access::{KubeletPort, NodePlace};
use crate::admission::{self, Refusal};
use crate::container_programs::ContainerPrograms;
use crate::containers::Containers;
use crate::critical_pods;
use crate::disks::Disks;
use crate::heartbeat;
use crate::images::ImageRegistry;
use crate::link::{Connected, Switch};
use crate::mail::{Mailbox, Mailboxes};
use crate::nic::Host;
use crate::node::NodeSpec;
use crate::pressure::{self, Shortage};
use crate::programs::OutsidePrograms;
use crate::status::condition_of;
use crate::timing::{PodTimings, Timing};

/// How often a node says that it is alive while time jumps: with a period of its own after that, less than the 50 seconds after which
/// the node controller takes it for lost.
const JUMPING_BEAT: Duration = Duration::from_secs(30);

/// A simulated node.
pub struct Kubelet {
    pub(super) client: Client,
    /// The same for single objects.
    pub(super) objects: ObjectClient,
    pub(super) spec: NodeSpec,
    pub(super) clock: SharedClock,
    pub(super) images: ImageRegistry,
    pub(super) disks: Disks,
    timing: Timing,
    pod_timings: Arc<PodTimings>,
    pub(super) recorder: EventRecorder,
    /// The node's port: its containers' logs, commands and ports.
    pub(super) access: KubeletPort,
    /// The same, as the programs of its pods use it.
    pub(super) host: Arc<dyn Host>,
    /// The view of the node's containers for programs beside the kubelet, if there are such programs.
    pub(super) containers: Option<Containers>,
    /// The programs in Rust of images.
    pub(super) programs: ContainerPrograms,
    /// Programs that run outside of the simulation, if there are any.
    pub(super) outside: Option<Arc<dyn OutsidePrograms>>,
    /// The jumps of the cluster's time.
    pub(super) jumps: Arc<Jumps>,
    desk: Desk,
    /// The last heartbeat in its turn.
    last_beat: Mutex<Option<Instant>>,
    /// What the pods here wait for, by uid, where anybody may ask.
    waits: Option<Mutex<BTreeMap<Text, Due>>>,
    /// The start; the periods of its regular work count from here.
    pub(super) started: Instant,
    seed: Seed,
    /// The period of its heartbeat; none if it needs none.
    heartbeat: Option<Duration>,
    connected: Connected,
    /// Its shortages, as its conditions show them.
    shortage: Mutex<Shown>,
    /// The pods here, by uid.
    pods: Mailboxes,
    /// How many pods have come.
    arrivals: AtomicU64,
    /// Those whose resize waits for room, by uid.
    waiting: Mutex<BTreeSet<String>>,
    /// Held while an image comes: the next one waits for that, in the order in which they were asked for (`serializeImagePulls`).
    pub(super) pulling: tokio::sync::Mutex<()>,
}

/// The shortages of a node.
#[derive(Default)]
struct Shown {
    /// The present shortages, by the Node's annotations.
    now: Vec<Shortage>,
    /// When each was last seen, by the condition's type; it is shown for some time after that.
    seen: BTreeMap<&'static str, Instant>,
}

impl Kubelet {
    /// A kubelet for `spec`. Must be made within a tokio runtime.
    #[must_use]
    pub fn new(
        client: impl Into<ObjectClient>,
        spec: NodeSpec,
        clock: SharedClock,
        seed: Seed,
        images: ImageRegistry,
        timing: Timing,
    ) -> Self {
        let objects = client.into();
        let recorder = EventRecorder::new(objects.clone(), "kubelet", Some(&spec.name), clock.clone())
            .with_reporting(true);
        let seed = seed.fork("kubelet").fork(&spec.name);
        let (access, pods) = (KubeletPort::default(), Mailboxes::default());
        access.see(&pods);
        access.prepare_by(pod::account_files(objects.client()));
        Self {
            client: objects.client().clone(),
            objects,
            spec,
            clock,
            images,
            disks: Disks::default(),
            timing,
            pod_timings: Arc::default(),
            recorder,
            host: Arc::new(access.clone()),
            access,
            containers: None,
            outside: None,
            programs: ContainerPrograms::default(),
            jumps: Arc::default(),
            desk: Desk::default(),
            last_beat: Mutex::default(),
            waits: None,
            started: Instant::now(),
            seed,
            heartbeat: None,
            connected: Connected::always(),
            shortage: Mutex::default(),
            pods,
            arrivals: AtomicU64::default(),
            waiting: Mutex::default(),
            pulling: tokio::sync::Mutex::default(),
        }
    }

    /// Renews the node's Lease and checks its condition `Ready` this often (a real kubelet: every ten seconds), for
    /// controllers that take a silent node for a lost one. Without it there is no Lease.
    #[must_use]
    pub fn with_heartbeat(mut self, period: Duration) -> Self {
        self.heartbeat = Some(period);
        self
    }

    /// The disks that its pods' files are on. All nodes of a cluster share them; without this the node has disks of its own.
    #[must_use]
    pub fn with_disks(mut self, disks: Disks) -> Self {
        self.disks = disks;
        self
    }

    /// The connection that `client` uses.
    pub fn with_switch(mut self, switch: &Switch) -> Self {
        self.connected = switch.watch();
        self
    }

    /// How long things take for pods of certain names. All nodes of a cluster share this.
    pub fn with_pod_timings(mut self, timings: Arc<PodTimings>) -> Self {
        self.pod_timings = timings;
        self
    }

    /// How long things take here.
    pub(super) fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The node's port: logs, commands, ports of its containers, as on a real kubelet's own port.
    #[must_use]
    pub fn access(&self) -> KubeletPort {
        self.access.clone()
    }

    /// The same kubelet, which registers its containers with `containers`.
    #[must_use]
    pub fn with_containers(mut self, containers: Option<Containers>) -> Self {
        self.containers = containers;
        self
    }

    /// The same kubelet, some of whose containers' programs run outside of the simulation.
    #[must_use]
    pub fn with_outside(mut self, programs: Option<Arc<dyn OutsidePrograms>>) -> Self {
        self.outside = programs;
        self
    }

    /// The same kubelet, with programs in Rust for some images.
    #[must_use]
    pub fn with_programs(mut self, programs: ContainerPrograms) -> Self {
        self.programs = programs;
        self
    }

    /// The jumps of the cluster's time. While a probe asks a program on this machine, the clock stands.
    #[must_use]
    pub fn with_jumps(mut self, jumps: &Arc<Jumps>) -> Self {
        self.jumps = Arc::clone(jumps);
        self
    }

    /// The network that the node and its pods are on. Without one, programs reach nobody.
    #[must_use]
    pub fn with_network(self, network: &Network) -> Self {
        let place = NodePlace {
            network: network.downgrade(),
            address: self.spec.address.clone(),
        };
        self.access.settle(place);
        let spec = &self.spec;
        network.attach(
            &spec.name,
            &spec.address,
            &spec.pod_network,
            Arc::new(self.access.clone()),
        );
        self
    }

    /// Tells this agenda what the pods here wait for.
    #[must_use]
    pub fn with_agenda(mut self, agenda: &Agenda) -> Self {
        self.desk = agenda.desk();
        self.waits = Some(Mutex::default());
        self
    }

    /// Takes down what a pod waits for.
    pub(super) fn note_wait(&self, pod: &Value, due: Option<Instant>) {
        let Some(waits) = &self.waits else { return };
        let mut waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
        match due {
            Some(at) => {
                let due = Due {
                    at,
                    who: format!("kubelet {}", self.spec.name),
                    what: format!("{}/{}", pod.namespace(), pod.name()),
                };
                waits.insert(pod.meta_text("uid"), due);
            }
            None => _ = waits.remove(pod.uid()),
        }
    }

    /// What the pods here wait for.
    fn due(&self) -> Vec<Due> {
        let Some(waits) = &self.waits else {
            return Vec::new();
        };
        let waits = waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.values().cloned().collect()
    }

    /// Registers the node and runs its pods, until dropped.
    ///
    /// # Errors
    /// If the node cannot be registered.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, Result<(), kube::Error>> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(mut self) -> Result<(), kube::Error> {
        self.register().await?;
        let mut connected = std::mem::replace(&mut self.connected, Connected::always());
        let mut heartbeats = self.heartbeat.map(|period| {
            let mut interval = tokio::time::interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        let mut desk = std::mem::take(&mut self.desk);
        let kubelet = Arc::new(self);
        let query = format!("fieldSelector=spec.nodeName%3D{}", kubelet.spec.name);
        let mut pods = watch_json(kubelet.client.clone(), "/api/v1/pods", &query, false);
        let own = format!("fieldSelector=metadata.name%3D{}", kubelet.spec.name);
        let mut node = watch_metadata(kubelet.client.clone(), "/api/v1/nodes", &own);
        let mut addresses = Addresses {
            network: kubelet.spec.pod_network.clone(),
            next: 2,
        };
        loop {
            tokio::select! {
                biased;
                () = connected.restored() => kubelet.alive().await,
                () = tick(&mut heartbeats) => kubelet.beat().await,
                Some(change) = node.next() => {
                    connected.hold().await;
                    if let JsonChange::Present(node) = change {
                        let found = pressure::shortages(&node, || kubelet.spec.capacities());
                        kubelet.shortage().now = found;
                    }
                }
                () = kubelet.monitoring() => kubelet.relieve().await,
                answer = desk.asked() => {
                    // Whoever has asked may be gone.
                    let _ = answer.send(kubelet.due());
                }
                change = pods.next() => {
                    let Some(change) = change else { return Ok(()) };
                    connected.hold().await;
                    match change {
                        JsonChange::Present(pod) => kubelet.update(&mut addresses, pod),
                        JsonChange::Gone(pod) => {
                            if let Some(containers) = &kubelet.containers {
                                containers.forget(pod.uid());
                            }
                            lock(&kubelet.pods).remove(pod.uid());
                            kubelet.note_wait(&pod, None);
                            kubelet.resized(pod.uid());
                            kubelet.ask_again();
                        }
                        JsonChange::Synced => {}
                    }
                }
            }
        }
    }

    /// Sends a heartbeat in its turn. While time jumps, where nobody can look, it sends only as many as it needs to count as alive.
    async fn beat(&self) {
        let (client, node, now) = (&self.client, &self.spec.name, Instant::now());
        let last = lock(&self.last_beat).replace(now);
        if !self.jumps.is_under_way() {
            return self.alive().await;
        }
        if let Some(last) = last.filter(|last| now.duration_since(*last) < JUMPING_BEAT) {
            *lock(&self.last_beat) = Some(last);
            return;
        }
        if let Err(error) = heartbeat::renew(client, node, self.clock.now()).await {
            tracing::warn!(%error, node, "say that a node is alive");
        }
    }

    /// Sends a heartbeat; the next heartbeat makes up for a failed one.
    async fn alive(&self) {
        let (client, node, now) = (&self.client, &self.spec.name, self.clock.now());
        let lease = match self.heartbeat {
            Some(_) => heartbeat::renew(client, node, now).await,
            None => heartbeat::give_up(client, node).await,
        };
        let told = match lease {
            Ok(()) => heartbeat::report_ready(client, node, now, &self.pressures()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = told {
            tracing::warn!(%error, node, "say that a node is alive");
        }
    }

    fn shortage(&self) -> MutexGuard<'_, Shown> {
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The types of the node's pressure conditions.
    pub(super) fn pressures(&self) -> Vec<&'static str> {
        let shown = self.shortage();
        let known = pressure::SIGNALS.iter().map(|signal| signal.condition);
        known.filter(|kind| shown.seen.contains_key(kind)).collect()
    }

    /// Waits for the next check of the node's resources, if it has or had a shortage.
    async fn monitoring(&self) {
        let is_well = {
            let shown = self.shortage();
            shown.seen.is_empty() && shown.now.is_empty()
        };
        if is_well {
            return std::future::pending().await;
        }
        let period = pressure::MONITORING_PERIOD.as_millis();
        let left = period - self.started.elapsed().as_millis() % period;
        tokio::time::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(1))).await;
    }

    /// Shows the node's shortages in its conditions, and evicts a pod for them.
    async fn relieve(&self) {
        let shortages = self.shortage().now.clone();
        let before = self.pressures();
        let now = Instant::now();
        {
            let mut shown = self.shortage();
            shown
                .seen
                .retain(|_, seen| now.duration_since(*seen) < pressure::TRANSITION_PERIOD);
            for shortage in &shortages {
                shown.seen.insert(shortage.signal.condition, now);
            }
        }
        let pressures = self.pressures();
        for signal in &pressure::SIGNALS {
            let (was, is) = (
                before.contains(&signal.condition),
                pressures.contains(&signal.condition),
            );
            let reason = if is { signal.events.0 } else { signal.events.1 };
            if was != is {
                let message = format!("Node {} status is now: {reason}", self.spec.name);
                self.node_event(EventType::Normal, reason, message);
            }
        }
        if before != pressures {
            let (client, node) = (&self.client, &self.spec.name);
            let told = heartbeat::report_ready(client, node, self.clock.now(), &pressures).await;
            if let Err(error) = told {
                tracing::warn!(%error, node, "say what a node is short of");
            }
        }
        let Some(shortage) = shortages.first() else {
            return;
        };
        let message = format!("Attempting to reclaim {}", shortage.signal.resource);
        self.node_event(EventType::Warning, "EvictionThresholdMet", message);
        let pods = self.active();
        let Some(victim) = pressure::victim(shortage, &pods) else {
            return;
        };
        let eviction = Arc::new(pressure::eviction(shortage, victim));
        if let Some(mailbox) = lock(&self.pods).get(victim.uid()) {
            mailbox.send_modify(|mail| mail.eviction = Some(eviction));
        }
    }

    /// The pods that run here, or are to, by namespace and name.
    fn active(&self) -> Vec<Arc<Value>> {
        let mut active = Vec::new();
        for mailbox in lock(&self.pods).values() {
            active.extend(mailbox.look(|mail| {
                let leaves = mail.eviction.is_some() || mail.pod.is_terminating() || is_over(&mail.pod);
                (!leaves).then(|| Arc::clone(&mail.pod))
            }));
        }
        active.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        active
    }

    /// The first resource that the node lacks for a pod, beside the others here; none if there is room.
    pub(super) fn room_for(&self, pod: &Value) -> Option<Insufficient> {
        self.lacking(pod, u64::MAX).into_iter().next()
    }

    /// The lacking resources, beside the pods that came before that arrival.
    fn lacking(&self, pod: &Value, arrival: u64) -> Vec<Insufficient> {
        let waiting = lock(&self.waiting).clone();
        let mut others = Vec::new();
        for mailbox in lock(&self.pods).values() {
            let (other, came) = mailbox.look(|mail| (Arc::clone(&mail.pod), mail.arrival));
            if other.uid() != pod.uid() && came < arrival && !is_over(&other) {
                let waits = waiting.contains(other.uid());
                let count = if waits { Count::Given } else { Count::Most };
                others.push(requests(&other, count));
            }
        }
        let node = self.spec.object("");
        let allocatable = amounts(at(&node, "status.allocatable"));
        insufficient(&requests(pod, Count::Asked), &allocatable, &others)
    }

    /// Why a pod that no scheduler has placed cannot be here, if it cannot: reason and message.
    pub(super) async fn misfit(&self, pod: &Value) -> Option<Refusal> {
        let name = &self.spec.name;
        let request = http::Request::get(format!("/api/v1/nodes/{name}"))
            .body(Vec::new())
            .ok()?;
        let node = match self.client.request::<Value>(request).await {
            Ok(node) => node,
            Err(error) => {
                tracing::debug!(%error, name, "look a node up");
                self.spec.object("")
            }
        };
        // Pods are admitted in the order in which they come: a later one takes nothing from an earlier one.
        let own = lock(&self.pods)
            .get(pod.uid())
            .map(|mailbox| mailbox.look(|mail| mail.arrival));
        let arrival = own.unwrap_or(u64::MAX);
        let others: Vec<Arc<Value>> = lock(&self.pods)
            .values()
            .map(|mailbox| mailbox.look(|mail| (Arc::clone(&mail.pod), mail.arrival)))
            .filter(|(other, came)| other.uid() != pod.uid() && *came < arrival && !is_over(other))
            .map(|(other, _)| other)
            .collect();
        let lacking = self.lacking(pod, arrival);
        if lacking.is_empty() || !critical_pods::is_critical(pod) {
            return admission::misfit(pod, &node, &others, lacking.into_iter().next());
        }
        if let Some(refusal) = admission::misfit(pod, &node, &others, None) {
            return Some(refusal);
        }
        let mut others = self.active();
        others.retain(|other| other.uid() != pod.uid());
        match critical_pods::victims(pod, &others, &lacking) {
            Ok(victims) => {
                for victim in &victims {
                    self.preempt(victim.uid()).await;
                }
                None
            }
            Err(why) => Some((
                "UnexpectedAdmissionError".to_owned(),
                format!("Unexpected error while attempting to recover from admission failure: {why}"),
            )),
        }
    }

    /// Has a pod end, and waits for that.
    async fn preempt(&self, uid: &str) {
        let Some(mut inbox) = lock(&self.pods).get(uid).map(|mailbox| {
            mailbox.send_modify(|mail| mail.eviction = Some(Arc::new(critical_pods::eviction())));
            mailbox.subscribe()
        }) else {
            return;
        };
        while !is_over(&inbox.read().pod) {
            if inbox.changed().await.is_err() {
                return;
            }
        }
    }

    /// The resize of a pod waits for room.
    pub(super) fn deferred(&self, uid: &str) {
        lock(&self.waiting).insert(uid.to_owned());
    }

    /// The resize of a pod waits no longer.
    pub(super) fn resized(&self, uid: &str) {
        lock(&self.waiting).remove(uid);
    }

    /// Has the resizes that wait looked at again: those first that ask for no more than before, then those of the highest priority, then
    /// guaranteed ones, then those that wait longest.
    fn ask_again(&self) {
        let waiting = lock(&self.waiting).clone();
        if waiting.is_empty() {
            return;
        }
        let pods = lock(&self.pods);
        let mut asked: Vec<(Order, &Mailbox)> = waiting
            .iter()
            .filter_map(|uid| pods.get(uid.as_str()))
            .map(|mailbox| (mailbox.look(|mail| order(&mail.pod)), mailbox))
            .collect();
        asked.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, mailbox) in asked {
            mailbox.send_modify(|mail| mail.resize_asked += 1);
        }
    }

    fn node_event(&self, severity: EventType, reason: &str, message: String) {
        let name = Some(self.spec.name.clone());
        // The kubelet gives a node's name for its uid.
        let node = ObjectReference {
            kind: Some("Node".to_owned()),
            uid: name.clone(),
            name,
            ..ObjectReference::default()
        };
        self.recorder.event(&node, severity, reason, message);
    }

    async fn register(&self) -> Result<(), kube::Error> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
        let nodes: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let object = self.spec.object(&rfc3339(self.clock.now_seconds()));
        let object: DynamicObject = shared_json::from_value(object).map_err(kube::Error::SerdeError)?;
        match nodes.create(&PostParams::default(), &object).await {
            // A node that restarts finds itself registered.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn update(self: &Arc<Self>, addresses: &mut Addresses, pod: Arc<Value>) {
        let uid = pod.meta_text("uid");
        let mut pods = lock(&self.pods);
        match pods.get(&uid) {
            Some(mailbox) => {
                let frees = !lock(&self.waiting).is_empty() && mailbox.look(|mail| frees(&mail.pod, &pod));
                mailbox.send_modify(|mail| mail.pod = pod);
                drop(pods);
                if frees {
                    self.ask_again();
                }
            }
            None => {
                let arrival = self.arrivals.fetch_add(1, Ordering::Relaxed);
                let (mailbox, inbox) = Mailbox::new(Arc::clone(&pod), arrival);
                let random: Random = self.seed.fork(&pod_name(&pod)).random();
                let timing = self.pod_timings.next(pod.name());
                let worker = PodWorker::new(Arc::clone(self), inbox, addresses.take(), random, timing);
                tokio::spawn(Box::new(worker).run());
                pods.insert(uid, mailbox);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a pod shows a phase that it never leaves.
fn is_over(pod: &Value) -> bool {
    let phase = at(pod, "status.phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a change of a pod leaves more room to others: it is over, or asks for less.
fn frees(old: &Value, new: &Value) -> bool {
    if is_over(new) && !is_over(old) {
        return true;
    }
    let (before, now) = (requests(old, Count::Most), requests(new, Count::Most));
    ["cpu", "memory"].into_iter().any(|name| {
        now.get(name).copied().unwrap_or_default() < before.get(name).copied().unwrap_or_default()
    })
}

/// Before which others a resize that waits is looked at.
type Order = (bool, std::cmp::Reverse<i64>, bool, String, String);

fn order(pod: &Value) -> Order {
    let (asked, given) = (requests(pod, Count::Asked), requests(pod, Count::Given));
    let grows = ["cpu", "memory"].into_iter().any(|name| {
        asked.get(name).copied().unwrap_or_default() > given.get(name).copied().unwrap_or_default()
    });
    let text = |path: &str| at(pod, path).and_then(Value::as_str).unwrap_or_default();
    let since =
        condition_of(pod, "PodResizePending").and_then(|pending| pending.get("lastTransitionTime")?.as_str());
    (
        grows,
        std::cmp::Reverse(
            at(pod, "spec.priority")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        ),
        text("status.qosClass") != "Guaranteed",
        since.unwrap_or_default().to_owned(),
        pod_name(pod),
    )
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
