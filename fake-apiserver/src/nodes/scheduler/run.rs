//! The loop: what has changed is taken in, then every pod without a node is tried.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{JsonChange, SharedClock, watch_json};
use futures::stream::SelectAll;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use shared_json::{Value, json};

use super::cluster::{Cluster, NodeInfo, PodInfo, list, text};
use super::devices;
use super::filters::{Cycle, Hopeless, Refusal, claims_of, is_bound, waits_for_consumer};
use super::message::{self, Preemption};
use super::preemption;
use super::queue::Queue;
use super::report::{NAME, Reporter};
use super::scores;
use crate::meta::{ObjectMeta, at};
use crate::server::rfc3339;

/// So many nodes are always looked at; of more, a share (the real one's).
const NODES_ALWAYS: usize = 100;
const CLAIM_FINALIZER: &str = "resource.kubernetes.io/delete-protection";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Assigns pods to nodes.
pub struct Scheduler {
    client: Client,
    clock: SharedClock,
    cluster: Cluster,
    /// Pods without a node.
    queue: Queue,
    /// Pods whose node is chosen and whose claims are being bound, by uid.
    binding: BTreeMap<String, (Arc<PodInfo>, String)>,
    reporter: Reporter,
    /// Where the next look at many nodes begins.
    next_node: usize,
    /// Where pods of a name go if they can.
    wanted: BTreeMap<String, String>,
}

/// Where a pod goes.
struct Choice {
    node: String,
    /// Where the next look begins.
    next: usize,
    /// Its claims of devices, as they are written.
    claims: Vec<Value>,
}

/// Why a pod goes nowhere.
#[derive(Default)]
struct Vain {
    message: String,
    /// Whether something is wrong with what it asks for.
    is_error: bool,
    victims: Option<preemption::Victims>,
    /// A claim of devices that is given back, to get others.
    idle: Option<Value>,
}

impl Vain {
    fn new(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Node,
    Pod,
    Claim,
    Volume,
    Class,
    Namespace,
    Service,
    Budget,
    Driver,
    DeviceClaim,
    DeviceClass,
    Slice,
}

const WATCHES: [(Kind, &str); 12] = [
    (Kind::Slice, "/apis/resource.k8s.io/v1/resourceslices"),
    (Kind::DeviceClass, "/apis/resource.k8s.io/v1/deviceclasses"),
    (Kind::DeviceClaim, "/apis/resource.k8s.io/v1/resourceclaims"),
    (Kind::Driver, "/apis/storage.k8s.io/v1/csinodes"),
    (Kind::Namespace, "/api/v1/namespaces"),
    (Kind::Service, "/api/v1/services"),
    (Kind::Budget, "/apis/policy/v1/poddisruptionbudgets"),
    (Kind::Node, "/api/v1/nodes"),
    (Kind::Pod, "/api/v1/pods"),
    (Kind::Claim, "/api/v1/persistentvolumeclaims"),
    (Kind::Volume, "/api/v1/persistentvolumes"),
    (Kind::Class, "/apis/storage.k8s.io/v1/storageclasses"),
];

impl Scheduler {
    /// A scheduler. It runs when [`Scheduler::run`] is awaited.
    #[must_use]
    pub fn new(client: Client, clock: SharedClock) -> Self {
        Self {
            reporter: Reporter::new(client.clone(), Arc::clone(&clock)),
            client,
            clock,
            cluster: Cluster::default(),
            queue: Queue::default(),
            binding: BTreeMap::new(),
            next_node: 0,
            wanted: BTreeMap::new(),
        }
    }

    /// Pods of these names go to these nodes, if they can: for a run under the conditions of another.
    #[must_use]
    pub fn with_placements(mut self, wanted: BTreeMap<String, String>) -> Self {
        self.wanted = wanted;
        self
    }

    /// Watches the cluster and assigns what has no node, until dropped.
    pub async fn run(mut self) {
        let mut changes = SelectAll::new();
        for (kind, path) in WATCHES {
            let keep = !matches!(kind, Kind::Pod);
            let watch = watch_json(self.client.clone(), path, "", keep);
            changes.push(watch.map(move |change| (kind, change)).boxed());
        }
        let mut unsynced = WATCHES.len();
        while let Some((kind, change)) = changes.next().await {
            let mut take = |scheduler: &mut Self, kind, change: JsonChange| match change {
                JsonChange::Synced => unsynced = unsynced.saturating_sub(1),
                JsonChange::Present(object) => scheduler.present(kind, object),
                JsonChange::Gone(object) => scheduler.gone(kind, &object),
            };
            take(&mut self, kind, change);
            while let Some(Some((kind, change))) = changes.next().now_or_never() {
                take(&mut self, kind, change);
            }
            if unsynced == 0 {
                self.finish_binding().await;
                self.schedule().await;
            }
        }
    }

    fn retry_all(&mut self) {
        self.queue.retry(self.clock.now(), |_| true);
    }

    /// What changes about volumes concerns only pods that have some.
    fn retry_with_claims(&mut self) {
        self.queue
            .retry(self.clock.now(), |pod| !claims_of(pod).is_empty());
    }

    /// What changes about devices concerns only pods that ask for some.
    fn retry_with_devices(&mut self) {
        self.queue.retry(self.clock.now(), |pod| {
            !list(pod, "spec.resourceClaims").is_empty()
        });
    }

    fn present(&mut self, kind: Kind, object: Arc<Value>) {
        let name = object.name().to_owned();
        match kind {
            Kind::Node => {
                let relevant = |node: &Value| {
                    let part = |path: &str| at(node, path).cloned();
                    (part("spec"), part("metadata.labels"), part("status.allocatable"))
                };
                let before = self.cluster.nodes.get(&name).map(|node| relevant(&node.object));
                let changed = before.is_none_or(|before| before != relevant(&object));
                self.cluster.put_node(Arc::unwrap_or_clone(object));
                if changed {
                    self.retry_all();
                }
            }
            Kind::Pod => self.pod(object),
            Kind::Claim => {
                self.cluster.claims.insert(
                    (object.namespace().to_owned(), name),
                    Arc::unwrap_or_clone(object),
                );
                self.retry_with_claims();
            }
            Kind::Volume => {
                self.cluster.volumes.insert(name, Arc::unwrap_or_clone(object));
                self.retry_with_claims();
            }
            Kind::Class => {
                self.cluster.classes.insert(name, Arc::unwrap_or_clone(object));
                self.retry_with_claims();
            }
            Kind::Namespace => {
                let labels = at(&object, "metadata.labels").cloned().unwrap_or_default();
                self.cluster.namespaces.insert(name, labels);
            }
            Kind::Driver => {
                self.cluster.drivers.insert(name, Arc::unwrap_or_clone(object));
                self.retry_with_claims();
            }
            Kind::DeviceClaim => {
                let key = (object.namespace().to_owned(), name);
                self.cluster
                    .device_claims
                    .insert(key, Arc::unwrap_or_clone(object));
                self.retry_with_devices();
            }
            Kind::DeviceClass => {
                let class = Arc::unwrap_or_clone(object);
                self.cluster.device_classes.insert(name, class);
                self.retry_with_devices();
            }
            Kind::Slice => {
                self.cluster.slices.insert(name, Arc::unwrap_or_clone(object));
                self.retry_with_devices();
            }
            Kind::Service => {
                let selector = at(&object, "spec.selector").cloned().unwrap_or_default();
                let key = (object.namespace().to_owned(), name);
                self.cluster.services.insert(key, selector);
            }
            Kind::Budget => {
                let key = (object.namespace().to_owned(), name);
                self.cluster.budgets.insert(key, Arc::unwrap_or_clone(object));
            }
        }
    }

    fn gone(&mut self, kind: Kind, object: &Value) {
        let name = object.name();
        match kind {
            Kind::Node => self.cluster.remove_node(name),
            Kind::Pod => {
                let uid = object.uid();
                self.queue.leave(uid);
                self.binding.remove(uid);
                self.reporter.forget(uid);
                if self.cluster.withdraw(uid) {
                    self.retry_all();
                }
                if self.cluster.is_placed(uid) {
                    self.cluster.forget(uid);
                    self.retry_all();
                }
            }
            Kind::Claim => {
                self.cluster
                    .claims
                    .remove(&(object.namespace().to_owned(), name.to_owned()));
            }
            Kind::Volume => {
                self.cluster.volumes.remove(name);
            }
            Kind::Class => {
                self.cluster.classes.remove(name);
            }
            Kind::Namespace => {
                self.cluster.namespaces.remove(name);
            }
            Kind::Driver => {
                self.cluster.drivers.remove(name);
            }
            Kind::DeviceClaim => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.device_claims.remove(&key);
                self.retry_with_devices();
            }
            Kind::DeviceClass => {
                self.cluster.device_classes.remove(name);
            }
            Kind::Slice => {
                self.cluster.slices.remove(name);
            }
            Kind::Service => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.services.remove(&key);
            }
            Kind::Budget => {
                let key = (object.namespace().to_owned(), name.to_owned());
                self.cluster.budgets.remove(&key);
            }
        }
    }

    fn pod(&mut self, pod: Arc<Value>) {
        let uid = pod.uid().to_owned();
        let node = text(&pod, "spec.nodeName").to_owned();
        let over = matches!(text(&pod, "status.phase"), "Succeeded" | "Failed");
        if over {
            self.queue.leave(&uid);
            if self.cluster.is_placed(&uid) {
                self.cluster.forget(&uid);
                self.retry_all();
            }
        } else if !node.is_empty() {
            self.queue.leave(&uid);
            self.binding.remove(&uid);
            self.cluster.place_newest(pod, &node);
        } else if !is_ours(&pod) || pod.is_terminating() {
            self.queue.leave(&uid);
        } else if !self.cluster.is_placed(&uid) {
            // Its status is ours; a change of anything else may help.
            self.queue.put(pod, self.clock.now(), |old, new| {
                let claims = "/status/resourceClaimStatuses";
                old.get("spec") != new.get("spec")
                    || old.pointer(claims) != new.pointer(claims)
                    || old.pointer("/metadata/labels") != new.pointer("/metadata/labels")
            });
        }
    }

    async fn schedule(&mut self) {
        for pod in self.queue.take() {
            let uid = pod.object.uid();
            // One whose claims of devices are not there is not tried.
            if devices::claims_of(&pod.object, &self.cluster).is_err() {
                self.queue.keep(uid, self.clock.now());
            } else if self.try_one(&pod).await {
                self.queue.leave(uid);
            } else {
                self.queue.failed(uid, self.clock.now());
            }
        }
    }

    /// Tries to find a node. False if there is none.
    async fn try_one(&mut self, pod: &Arc<PodInfo>) -> bool {
        let total = self.cluster.nodes.len();
        let outcome = {
            let cycle = Cycle::new(pod, &self.cluster);
            match &cycle {
                Err(Hopeless::Volumes(why)) => Err(Vain::new(message::hopeless(total, why))),
                Err(Hopeless::Devices(why)) => Err(Vain::new(message::no_devices(total, why))),
                Ok(cycle) => self.choose(cycle),
            }
        };
        match outcome {
            Ok(choice) => {
                self.next_node = choice.next;
                self.assign(pod, &choice.node, choice.claims).await;
                true
            }
            Err(vain) => {
                self.give_up(pod, vain).await;
                false
            }
        }
    }

    /// Tells why a pod goes nowhere, and makes room for it where it can.
    async fn give_up(&mut self, pod: &Arc<PodInfo>, vain: Vain) {
        let (message, victims) = (vain.message, vain.victims);
        if let Some(mut claim) = vain.idle {
            claim["status"] = json!({});
            self.put_claim(claim, "/status").await;
        }
        self.reporter
            .event(
                &pod.object,
                "Warning",
                "FailedScheduling",
                "Scheduling",
                message.clone(),
            )
            .await;
        let nominated = victims
            .as_ref()
            .map(|victims: &preemption::Victims| victims.node.as_str());
        let reason = if vain.is_error {
            "SchedulerError"
        } else {
            "Unschedulable"
        };
        self.reporter
            .unschedulable(&pod.object, reason, &message, nominated)
            .await;
        if let Some(victims) = victims {
            self.cluster.nominate(pod, Some(&victims.node));
            self.drive_away(pod, &victims).await;
        }
    }

    /// A node, and what is written of the claims of devices of a pod that goes there.
    fn choice(&self, cycle: &Cycle<'_>, node: String, next: usize) -> Choice {
        let allocations = cycle.cluster.nodes.get(&node).and_then(|there| {
            let allocated = cycle.devices.allocate(cycle.cluster, there);
            allocated.ok().flatten()
        });
        let stamp = rfc3339(self.clock.now_seconds());
        let claims = cycle
            .devices
            .reserved(&cycle.pod.object, allocations.unwrap_or_default(), &stamp);
        Choice { node, next, claims }
    }

    /// The best node and where to begin next time; or what to say, and whom to drive away.
    fn choose(&self, cycle: &Cycle<'_>) -> Result<Choice, Vain> {
        let wanted = self.wanted.get(cycle.pod.object.name());
        if let Some(node) = wanted.and_then(|name| self.cluster.nodes.get(name))
            && cycle.refuse(node).is_none()
        {
            return Ok(self.choice(cycle, node.name().to_owned(), self.next_node));
        }
        let nodes: Vec<&NodeInfo> = self.cluster.nodes.values().collect();
        let (enough, mut looked) = (enough(nodes.len()), 0);
        let (mut feasible, mut refusals) = (Vec::new(), Vec::new());
        let (last, first) = nodes.split_at(self.next_node % nodes.len().max(1));
        for node in first.iter().chain(last) {
            looked += 1;
            match cycle.refuse(node) {
                None => feasible.push(*node),
                Some(refusal) => refusals.push((*node, refusal)),
            }
            if feasible.len() >= enough {
                break;
            }
        }
        let next = if nodes.len() > NODES_ALWAYS {
            (self.next_node + looked) % nodes.len()
        } else {
            0
        };
        let wanted = self.wanted.get(cycle.pod.object.name());
        if let Some(wanted) =
            wanted.filter(|wanted| feasible.iter().any(|node| node.name() == wanted.as_str()))
        {
            return Ok(self.choice(cycle, wanted.clone(), next));
        }
        if let Some((_, refusal)) = refusals.iter().find(|(_, refusal)| refusal.is_error) {
            return Err(Vain {
                is_error: true,
                ..Vain::new(refusal.reasons.join(", "))
            });
        }
        if let Some(best) = scores::best(cycle, &feasible) {
            return Ok(self.choice(cycle, best, next));
        }
        let refused_by: Vec<&NodeInfo> = refusals
            .iter()
            .filter(|(_, refusal)| refusal.reasons.iter().any(|reason| reason == devices::ELSEWHERE))
            .map(|(node, _)| *node)
            .collect();
        let idle = cycle.devices.idle(&cycle.pod.object, &refused_by);
        let claims = cycle.devices.said(idle.is_some());
        let never = text(&cycle.pod.object, "spec.preemptionPolicy") == "Never";
        let (victims, outcome) = if never {
            (None, Preemption::Never)
        } else if preemption::is_waiting(cycle, &refusals) {
            (None, Preemption::Waiting)
        } else {
            match preemption::find(cycle, &refusals) {
                Ok(victims) => (Some(victims), Preemption::Found),
                Err(why) => (None, Preemption::Vain(why)),
            }
        };
        let refusals: Vec<Refusal> = refusals.into_iter().map(|(_, refusal)| refusal).collect();
        Err(Vain {
            victims,
            idle: idle.cloned(),
            ..Vain::new(message::refused(&refusals, claims, &outcome))
        })
    }

    async fn assign(&mut self, pod: &Arc<PodInfo>, node: &str, claims: Vec<Value>) {
        // Counted at once, so that the next pod sees it; taken back if the binding fails.
        self.cluster.place(Arc::clone(pod), node);
        for claim in claims {
            self.allocate(claim).await;
        }
        if self.needs_volumes(pod) {
            self.reporter.nominate(&pod.object, node).await;
            self.ask_for_volumes(pod, node).await;
            self.binding
                .insert(pod.object.uid().to_owned(), (Arc::clone(pod), node.to_owned()));
            return;
        }
        self.bind(pod, node).await;
    }

    /// Writes that a claim has its devices: first that it is not to go before they are given back, then which they are.
    async fn allocate(&mut self, mut claim: Value) {
        let mut finalizers: Vec<String> = claim.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|name| name == CLAIM_FINALIZER) {
            finalizers.push(CLAIM_FINALIZER.to_owned());
            claim["metadata"]["finalizers"] = json!(finalizers);
            let Some(written) = self.put_claim(claim.clone(), "").await else {
                return;
            };
            claim["metadata"]["resourceVersion"] = json!(written.resource_version());
        }
        self.put_claim(claim, "/status").await;
    }

    /// Writes a claim of devices; what was written is known at once.
    async fn put_claim(&mut self, claim: Value, subresource: &str) -> Option<Arc<Value>> {
        let key = (claim.namespace().to_owned(), claim.name().to_owned());
        let path = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}{subresource}",
            key.0, key.1
        );
        let sent = self
            .reporter
            .send(http::Method::PUT, &path, "application/json", &claim)
            .await;
        match sent {
            Ok(written) => {
                self.cluster.device_claims.insert(key, Value::clone(&written));
                Some(written)
            }
            Err(error) => {
                tracing::debug!(%error, claim = claim.name(), "write a claim of devices");
                None
            }
        }
    }

    fn claims<'a>(&'a self, pod: &'a PodInfo) -> impl Iterator<Item = &'a Value> {
        claims_of(&pod.object).into_iter().filter_map(|name| {
            self.cluster
                .claims
                .get(&(pod.object.namespace().to_owned(), name))
        })
    }

    fn needs_volumes(&self, pod: &PodInfo) -> bool {
        self.claims(pod).any(|claim| !is_bound(claim))
    }

    /// Tells the binder on which node the pod's claims are needed.
    async fn ask_for_volumes(&self, pod: &PodInfo, node: &str) {
        let waiting: Vec<Value> = self
            .claims(pod)
            .filter(|claim| !is_bound(claim) && waits_for_consumer(&self.cluster, claim))
            .cloned()
            .collect();
        for claim in waiting {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            let path = format!(
                "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
                claim.namespace(),
                claim.name()
            );
            let sent = self
                .reporter
                .send(http::Method::PATCH, &path, "application/merge-patch+json", &patch)
                .await;
            if let Err(error) = sent {
                tracing::debug!(%error, claim = claim.name(), "select a claim's node");
            }
        }
    }

    async fn finish_binding(&mut self) {
        let ready: Vec<String> = self
            .binding
            .iter()
            .filter(|(_, (pod, _))| !self.needs_volumes(pod))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ready {
            if let Some((pod, node)) = self.binding.remove(&uid) {
                self.bind(&pod, &node).await;
            }
        }
    }

    async fn bind(&mut self, pod: &Arc<PodInfo>, node: &str) {
        let object = &pod.object;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": object.name(), "namespace": object.namespace(), "uid": object.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/binding",
            object.namespace(),
            object.name()
        );
        match self
            .reporter
            .send(http::Method::POST, &path, "application/json", &binding)
            .await
        {
            Ok(_) => {
                let text = format!(
                    "Successfully assigned {}/{} to {node}",
                    object.namespace(),
                    object.name()
                );
                self.reporter
                    .event(object, "Normal", "Scheduled", "Binding", text)
                    .await;
            }
            Err(error) => {
                tracing::debug!(%error, pod = %object.name(), "bind a pod");
                self.cluster.forget(object.uid());
            }
        }
    }

    async fn drive_away(&mut self, pod: &PodInfo, victims: &preemption::Victims) {
        for victim in &victims.pods {
            let object = &victim.object;
            if object.is_terminating() {
                continue;
            }
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                "message": format!("{NAME}: preempting to accommodate a higher priority pod"),
                "lastProbeTime": null, "lastTransitionTime": rfc3339(self.clock.now_seconds()),
            });
            self.reporter
                .patch_status(object, &json!({"status": {"conditions": [condition]}}))
                .await;
            let path = format!("/api/v1/namespaces/{}/pods/{}", object.namespace(), object.name());
            let options = json!({"preconditions": {"uid": object.uid()}});
            if let Err(error) = self
                .reporter
                .send(http::Method::DELETE, &path, "application/json", &options)
                .await
            {
                tracing::debug!(%error, pod = %object.name(), "preempt a pod");
                continue;
            }
            let text = format!("Preempted by pod {} on node {}", pod.object.uid(), victims.node);
            self.reporter
                .event(object, "Normal", "Preempted", "Preempting", text)
                .await;
        }
    }
}

/// How many nodes that fit are enough to choose among.
fn enough(nodes: usize) -> usize {
    if nodes <= NODES_ALWAYS {
        return nodes;
    }
    let percent = 50_usize.saturating_sub(nodes / 125).max(5);
    (nodes * percent / 100).max(NODES_ALWAYS)
}

fn is_ours(pod: &Value) -> bool {
    let scheduler = at(pod, "spec.schedulerName")
        .and_then(Value::as_str)
        .unwrap_or(NAME);
    let gated = at(pod, "spec.schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty());
    scheduler == NAME && !gated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_nodes_a_share_is_enough() {
        let shares: Vec<usize> = [1, 100, 200, 1000, 5000, 20_000]
            .into_iter()
            .map(enough)
            .collect();
        assert_eq!(shares, [1, 100, 100, 420, 500, 1000]);
    }
}
