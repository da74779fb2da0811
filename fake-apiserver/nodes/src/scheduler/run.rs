//! The loop: changes are taken in, then every pod without a node is tried.

mod claim_writes;
mod observe;

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{JsonChange, ObjectClient, SharedClock, watch_json};
use futures::future::BoxFuture;
use futures::stream::SelectAll;
use futures::{FutureExt as _, StreamExt as _};
use kube::Client;
use machinery::meta::{ObjectMeta, at};
use machinery::types::rfc3339;
use shared_json::{Value, json};

use super::cluster::{Cluster, NodeInfo, PodInfo, text};
use super::devices;
use super::filters::{Cycle, Filter, Hopeless, Refusal, named};
use super::message::{self, Preemption};
use super::preemption;
use super::queue::Queue;
use super::report::{NAME, Reporter};
use super::scores;

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
    /// The claim for its extended resources that is made for it, and its allocation.
    special: Option<(devices::Special, Value)>,
}

/// Why a pod goes nowhere.
#[derive(Default)]
struct Vain {
    message: String,
    /// The filters that have refused it. None if its request is invalid.
    by: Vec<Filter>,
    victims: Option<Box<preemption::Victims>>,
    /// The node on which room is kept for it stays so: it may not preempt, or has.
    keeps_nomination: bool,
    /// A claim of devices that is given back, to get others.
    idle: Option<Value>,
    /// A claim of an earlier try, which goes.
    left: Option<Value>,
}

impl Vain {
    fn new(message: String, by: Vec<Filter>) -> Self {
        Self {
            message,
            by,
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
    pub fn new(client: impl Into<ObjectClient>, clock: SharedClock) -> Self {
        let objects = client.into();
        Self {
            client: objects.client().clone(),
            reporter: Reporter::new(objects, Arc::clone(&clock)),
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

    /// Watches the cluster and assigns pods without a node, until dropped.
    #[must_use]
    pub fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(self.until_dropped())
    }

    async fn until_dropped(mut self) {
        let mut changes = SelectAll::new();
        for (kind, path) in WATCHES {
            let keep = !matches!(kind, Kind::Pod);
            let watch = watch_json(self.client.clone(), path, "", keep);
            changes.push(watch.map(move |change| (kind, change)).boxed());
        }
        let mut unsynced = WATCHES.len();
        loop {
            let next = tokio::select! {
                biased;
                change = changes.next() => match change {
                    Some(change) => Some(change),
                    None => return,
                },
                () = tokio::time::sleep(self.until_due()), if self.queue.next_due().is_some() => None,
            };
            let mut take = |scheduler: &mut Self, kind, change: JsonChange| match change {
                JsonChange::Synced => unsynced = unsynced.saturating_sub(1),
                JsonChange::Present(object) => scheduler.present(kind, object),
                JsonChange::Gone(object) => scheduler.gone(kind, &object),
            };
            if let Some((kind, change)) = next {
                take(&mut self, kind, change);
            }
            while let Some(Some((kind, change))) = changes.next().now_or_never() {
                take(&mut self, kind, change);
            }
            if unsynced == 0 {
                self.queue.retry_due(self.clock.now());
                self.finish_binding().await;
                self.schedule().await;
            }
        }
    }

    fn until_due(&self) -> std::time::Duration {
        let left = self
            .queue
            .next_due()
            .map(|due| due.duration_since(self.clock.now()));
        let left = left.and_then(|left| std::time::Duration::try_from(left).ok());
        left.unwrap_or_default()
    }

    async fn schedule(&mut self) {
        for pod in self.queue.take() {
            let uid = pod.object.uid();
            // One whose claims of devices are not there is not tried.
            if devices::claims_of(&pod.object, &self.cluster).is_err() {
                self.queue.keep(uid, self.clock.now());
            } else if self.try_one(&pod).await {
                self.queue.leave(uid);
            }
        }
    }

    /// Tries to find a node. False if there is none.
    async fn try_one(&mut self, pod: &Arc<PodInfo>) -> bool {
        let total = self.cluster.nodes.len();
        let outcome = {
            let cycle = Cycle::new(pod, &self.cluster);
            match &cycle {
                Err(Hopeless::Volumes(by, why)) => Err(Vain::new(message::hopeless(total, why), vec![*by])),
                Err(Hopeless::Devices(why)) => {
                    Err(Vain::new(message::no_devices(total, why), vec![Filter::Devices]))
                }
                Ok(cycle) => self.choose(cycle),
            }
        };
        match outcome {
            Ok(choice) => {
                self.next_node = choice.next;
                let assigned = self.assign(pod, choice).await;
                if !assigned {
                    self.queue.failed(pod.object.uid(), self.clock.now(), Vec::new());
                }
                assigned
            }
            Err(vain) => {
                // Before anything is done about it: that may help already.
                self.queue
                    .failed(pod.object.uid(), self.clock.now(), vain.by.clone());
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
        if let Some(claim) = vain.left {
            self.delete_claim(claim).await;
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
        let nominated = if vain.keeps_nomination {
            None
        } else {
            Some(victims.as_deref().map_or("", |victims| victims.node.as_str()))
        };
        let reason = if vain.by.is_empty() {
            "SchedulerError"
        } else {
            "Unschedulable"
        };
        self.reporter
            .unschedulable(&pod.object, reason, &message, nominated)
            .await;
        if let Some(node) = nominated {
            self.cluster
                .nominate(pod, Some(node).filter(|node| !node.is_empty()));
        }
        if let Some(victims) = victims {
            self.drive_away(pod, &victims).await;
        }
    }

    /// A node, and the claims of devices to write for a pod that goes there.
    fn choice(&self, cycle: &Cycle<'_>, node: String, next: usize) -> Choice {
        let allocated = cycle.cluster.nodes.get(&node).and_then(|there| {
            let allocated = cycle.devices.allocate(cycle.cluster, there);
            allocated.ok().flatten()
        });
        let allocated = allocated.unwrap_or_default();
        let stamp = rfc3339(self.clock.now_seconds());
        let claims = cycle
            .devices
            .reserved(&cycle.pod.object, allocated.claims, &stamp);
        Choice {
            node,
            next,
            claims,
            special: allocated.special,
        }
    }

    /// The best node and the start of the next search; or the message, and the pods to evict.
    fn choose(&self, cycle: &Cycle<'_>) -> Result<Choice, Vain> {
        // Where room is kept for it it goes if it can, whatever other nodes are like.
        let wanted = self.wanted.get(cycle.pod.object.name()).map(String::as_str);
        for name in wanted.into_iter().chain([cycle.pod.nominated()]) {
            if let Some(node) = self.cluster.nodes.get(name)
                && cycle.refuse(node).is_none()
            {
                return Ok(self.choice(cycle, node.name().to_owned(), self.next_node));
            }
        }
        // Where only some can be meant, only those are looked at, unless what all are like has to be said.
        let named = named(&cycle.pod.object).unwrap_or_default();
        let named: Vec<&NodeInfo> = named
            .into_iter()
            .filter_map(|name| self.cluster.nodes.get(name))
            .filter(|node| cycle.refuse(node).is_none())
            .collect();
        if !named.is_empty()
            && let Some(best) = scores::best(cycle, &named)
        {
            let next = self.turn(named.len());
            return Ok(self.choice(cycle, best, next));
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
        let next = self.turn(looked);
        let wanted = self.wanted.get(cycle.pod.object.name());
        if let Some(wanted) =
            wanted.filter(|wanted| feasible.iter().any(|node| node.name() == wanted.as_str()))
        {
            return Ok(self.choice(cycle, wanted.clone(), next));
        }
        if let Some((_, refusal)) = refusals.iter().find(|(_, refusal)| refusal.is_error) {
            return Err(Vain::new(refusal.reasons.join(", "), Vec::new()));
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
        let mut by: Vec<Filter> = refusals.iter().filter_map(|refusal| refusal.by).collect();
        by.sort_unstable();
        by.dedup();
        if by.is_empty() {
            // There is no node at all: any will do.
            by.push(Filter::Name);
        }
        Err(Vain {
            victims: victims.map(Box::new),
            keeps_nomination: matches!(outcome, Preemption::Never | Preemption::Waiting),
            left: cycle.devices.left().filter(|_| idle.is_none()).cloned(),
            idle: idle.cloned(),
            ..Vain::new(message::refused(&refusals, claims, &outcome), by)
        })
    }

    /// At which node the next pod begins, after so many have been looked at for this one.
    fn turn(&self, looked: usize) -> usize {
        let nodes = self.cluster.nodes.len();
        if nodes > NODES_ALWAYS {
            (self.next_node + looked) % nodes
        } else {
            0
        }
    }

    /// False if the pod did not get there.
    async fn assign(&mut self, pod: &Arc<PodInfo>, choice: Choice) -> bool {
        let node = choice.node.as_str();
        // Counted at once, so that the next pod sees it; taken back if the binding fails.
        self.cluster.place(Arc::clone(pod), node);
        for claim in choice.claims {
            self.allocate(claim).await;
        }
        let mut made = None;
        if let Some((special, allocation)) = choice.special {
            made = self.make_claim(pod, special, allocation).await;
            if made.is_none() {
                self.cluster.forget(pod.object.uid());
                return false;
            }
        }
        if self.needs_volumes(pod) {
            self.reporter.nominate(&pod.object, node).await;
            self.ask_for_volumes(pod, node).await;
            self.binding
                .insert(pod.object.uid().to_owned(), (Arc::clone(pod), node.to_owned()));
            return true;
        }
        let bound = self.bind(pod, node).await;
        let made = made.filter(|_| !bound);
        if let Some(claim) = made.and_then(|key| self.cluster.device_claims.get(&key).cloned()) {
            self.delete_claim(claim).await;
        }
        bound
    }

    async fn finish_binding(&mut self) {
        let ready: Vec<String> = self
            .binding
            .iter()
            .filter(|(_, (pod, _))| !self.needs_volumes(pod))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in ready {
            if let Some((pod, node)) = self.binding.remove(&uid)
                && !self.bind(&pod, &node).await
            {
                let now = self.clock.now();
                self.queue.put(Arc::clone(&pod.object), now, |_, _, _| false);
            }
        }
    }

    /// False if the server does not have it.
    async fn bind(&mut self, pod: &Arc<PodInfo>, node: &str) -> bool {
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
                true
            }
            Err(error) => {
                tracing::debug!(%error, pod = %object.name(), "bind a pod");
                self.cluster.forget(object.uid());
                false
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
