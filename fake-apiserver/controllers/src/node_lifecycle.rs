//! Nodes that are not ready: their taints, and the eviction of pods that do not tolerate them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use client_kit::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::placement::{OS_IMAGE, tolerates};
use machinery::types::rfc3339;
use shared_json::{Map, Value, json};

use super::node_zones::{Zones, zone_of};
use super::runtime::is_over;
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, list, text, time, until};

/// How long a node may be silent before its conditions become unknown (the real default).
const GRACE: Duration = Duration::from_secs(50);
/// The same for one that has never said how it is.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// The conditions of nodes that are probed.
const PROBED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that taint a node while they hold, and the taint.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// How often the real one looks at nodes: so long a new one may wait until it is said to be known.
const MONITOR: Duration = Duration::from_secs(5);
/// Labels that a node is to have for the sake of older clients, and where their values are.
const OLD_LABELS: [(&str, &str); 2] = [
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
];

/// The controller.
#[derive(Default)]
pub(super) struct NodeLifecycle {
    /// The nodes that were seen: uid, and the time before which their first events are not recorded.
    known: BTreeMap<String, (String, Option<Timestamp>)>,
    /// The uids of nodes that were not ready when they were seen first.
    unready: Mutex<BTreeSet<String>>,
    /// When the next node of a zone may lose its pods.
    paces: BTreeMap<(String, String), Timestamp>,
    /// Lost nodes whose pods do not have to go as their zones are, and those whose pods do.
    held: BTreeSet<String>,
    tainted: BTreeSet<String>,
    /// The last that nodes have said, by their status and by their lease, and since when that is known.
    probes: BTreeMap<String, ((String, String), Timestamp)>,
    /// By node: pods that have to go some time, by namespace and name, and when.
    leaving: BTreeMap<String, BTreeMap<(String, String), Timestamp>>,
}

/// Says something about a node. Its events are in the default namespace, and name no version of it.
fn tell(cx: &Cx<'_>, name: &str, uid: &str, reason: &str, message: String) {
    let node = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    cx.recorder.event(&node, EventType::Normal, reason, message);
}

fn ready(node: &Value) -> &str {
    condition(node, "Ready").map_or("", |condition| text(condition, "status"))
}

/// The taint of a node that is lost.
fn lost(node: &Value) -> Option<&'static str> {
    match ready(node) {
        "False" => Some(NOT_READY),
        "Unknown" => Some(UNREACHABLE),
        _ => None,
    }
}

fn is_simulated(node: &Value) -> bool {
    text(node, "status.nodeInfo.osImage") == OS_IMAGE
}

fn has_taint(node: &Value, keys: &[&str], effect: &str) -> bool {
    list(node, "spec.taints")
        .iter()
        .any(|taint| keys.contains(&text(taint, "key")) && text(taint, "effect") == effect)
}

/// The taints that a node's conditions ask for: key and effect. Pods have to go from lost ones if it `evicts`.
fn asked(node: &Value, evicts: bool) -> Vec<(&'static str, &'static str)> {
    let mut out = Vec::new();
    for (kind, taint) in PRESSURES {
        if condition(node, kind).is_some_and(|condition| text(condition, "status") == "True") {
            out.push((taint, "NoSchedule"));
        }
    }
    if at(node, "spec.unschedulable").and_then(Value::as_bool) == Some(true) {
        out.push((UNSCHEDULABLE, "NoSchedule"));
    }
    if let Some(key) = lost(node) {
        out.push((key, "NoSchedule"));
        if evicts {
            out.push((key, "NoExecute"));
        }
    }
    out
}

/// The taints that a node is to have; none if it has them.
fn taints(node: &Value, evicts: bool, stamp: &str) -> Option<Vec<Value>> {
    let present = list(node, "spec.taints");
    let asked = asked(node, evicts);
    let own = |taint: &Value| {
        let key = text(taint, "key");
        key == NOT_READY
            || key == UNREACHABLE
            || key == UNSCHEDULABLE
            || PRESSURES.iter().any(|(_, name)| *name == key)
    };
    let is = |taint: &Value, (key, effect): &(&str, &str)| {
        text(taint, "key") == *key && text(taint, "effect") == *effect
    };
    let mut out: Vec<Value> = present
        .iter()
        .filter(|taint| !own(taint) || asked.iter().any(|wanted| is(taint, wanted)))
        .cloned()
        .collect();
    for wanted in &asked {
        if !out.iter().any(|taint| is(taint, wanted)) {
            out.push(json!({"key": wanted.0, "effect": wanted.1, "timeAdded": stamp}));
        }
    }
    (out.as_slice() != present).then_some(out)
}

/// When a pod that does not tolerate the node's taints for ever has to go, if that is found `now`: none if it may stay.
fn leaves_at(node: &Value, pod: &Value, now: Timestamp) -> Option<Timestamp> {
    let mut shortest: Option<i64> = None;
    for taint in list(node, "spec.taints")
        .iter()
        .filter(|taint| text(taint, "effect") == "NoExecute")
    {
        // The first that is for it counts, however long the others would stay.
        let toleration = list(pod, "spec.tolerations")
            .iter()
            .find(|toleration| tolerates(toleration, taint));
        let Some(toleration) = toleration else {
            return Some(now);
        };
        let seconds = toleration.get("tolerationSeconds").and_then(Value::as_i64);
        shortest = [shortest, seconds].into_iter().flatten().min();
    }
    let stays = Duration::from_secs(u64::try_from(shortest?).unwrap_or(0));
    now.saturating_add(stays).ok()
}

#[async_trait]
impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Nodes, Res::Pods, Res::Leases]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Nodes => {
                if old.is_none() && ready(object) != "True" {
                    self.unready().insert(object.uid().to_owned());
                }
                let mut keys = vec![Key::of(object)];
                // How fast nodes lose their pods depends on the others.
                if old.is_none_or(|old| ready(old) != ready(object)) {
                    keys.extend(self.held.iter().map(|name| Key::new("", name)));
                    if ready(object) != "True" {
                        keys.extend(self.tainted.iter().map(|name| Key::new("", name)));
                    }
                }
                keys
            }
            Res::Pods => {
                let node = text(object, "spec.nodeName");
                let moved = old.is_none_or(|old| text(old, "spec.nodeName") != node);
                let is_tainted = || {
                    let node = cache.get(Res::Nodes, "", node);
                    node.is_some_and(|node| !list(node, "spec.taints").is_empty())
                };
                if moved && is_tainted() {
                    vec![Key::new("", node)]
                } else {
                    Vec::new()
                }
            }
            _ if object.namespace() == "kube-node-lease" => vec![Key::new("", object.name())],
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(mut node) = cx.cache.get(Res::Nodes, "", &key.name).cloned() else {
            self.held.remove(key.name.as_str());
            self.tainted.remove(key.name.as_str());
            self.probes.remove(key.name.as_str());
            self.leaving.remove(key.name.as_str());
            let gone = self.known.remove(key.name.as_str());
            if let Some((uid, _)) = &gone {
                self.unready().remove(uid);
            }
            if let Some((uid, None)) = gone {
                let text = format!("Node {0} event: Removing Node {0} from Controller", key.name);
                tell(cx, &key.name, &uid, "RemovingNode", text);
            }
            return Ok(Next::Change);
        };
        let mut next = self.greet(cx, &node);
        if let Some(labels) = old_labels(&node) {
            let patch = json!({"metadata": {"labels": labels}});
            node = std::sync::Arc::new(cx.patch(Res::Nodes, &node, "", patch).await?);
        }
        if let Some((silent, left)) = self.silence(cx, &node) {
            if silent {
                let was_ready = ready(&node) == "True";
                node = std::sync::Arc::new(make_unknown(cx, &node).await?);
                // A node that says itself that it is not ready has told its pods.
                if was_ready {
                    let text = format!("Node {} status is now: NodeNotReady", node.name());
                    cx.normal(Res::Nodes, &node, "NodeNotReady", text);
                    pods_not_ready(cx, &node).await?;
                }
            } else {
                next = [next, Some(left)].into_iter().flatten().min();
            }
        }
        let (evicts, wait) = self.evicts(cx, &node);
        next = [next, wait].into_iter().flatten().min();
        if let Some(taints) = taints(&node, evicts, &cx.stamp()) {
            node = std::sync::Arc::new(
                cx.patch(Res::Nodes, &node, "", json!({"spec": {"taints": taints}}))
                    .await?,
            );
        }
        let before = self.leaving.remove(node.name()).unwrap_or_default();
        let evicted = evict(cx, &node, &before).await?;
        tell_who_stays(cx, &before, &evicted);
        if !evicted.later.is_empty() {
            self.leaving.insert(node.name().to_owned(), evicted.later);
        }
        Ok([next, evicted.next].into_iter().flatten().min().into())
    }
}

impl NodeLifecycle {
    fn unready(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.unready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a node's pods have to go because it is lost, and if not yet, how long that takes.
    fn evicts(&mut self, cx: &Cx<'_>, node: &Value) -> (bool, Option<Duration>) {
        let name = node.name();
        self.held.remove(name);
        self.tainted.remove(name);
        if lost(node).is_none() {
            return (false, None);
        }
        let zones = Zones::of(cx.cache.all(Res::Nodes).map(std::convert::AsRef::as_ref));
        let zone = zone_of(node);
        let has = has_taint(node, &[NOT_READY, UNREACHABLE], "NoExecute");
        if has && !zones.are_all_lost() {
            self.tainted.insert(name.to_owned());
            return (true, None);
        }
        let Some(pace) = zones.pace(&zone) else {
            self.held.insert(name.to_owned());
            return (false, None);
        };
        let now = cx.now();
        if let Some(left) = self.paces.get(&zone).and_then(|next| until(*next, now)) {
            self.held.insert(name.to_owned());
            return (false, Some(left));
        }
        self.paces.insert(zone, now.saturating_add(pace).unwrap_or(now));
        self.tainted.insert(name.to_owned());
        (true, None)
    }

    /// Whether a node has stopped to say how it is, by its lease or by its status, and otherwise when to look again. Simulated
    /// nodes without leases are taken to be there.
    fn silence(&mut self, cx: &Cx<'_>, node: &Value) -> Option<(bool, Duration)> {
        let now = cx.now();
        let until_silent = |since: Timestamp, grace: Duration| {
            let at = since.saturating_add(grace).ok()?;
            Some(match until(at, now) {
                Some(left) => (false, left),
                None => (true, Duration::ZERO),
            })
        };
        if ready(node) == "Unknown" {
            return None;
        }
        let lease = cx.cache.get(Res::Leases, "kube-node-lease", node.name());
        if lease.is_none() && is_simulated(node) {
            self.probes.remove(node.name());
            return None;
        }
        let said = condition(node, "Ready");
        let grace = if said.is_some() { GRACE } else { STARTUP_GRACE };
        let heartbeat = said.map_or("", |said| text(said, "lastHeartbeatTime"));
        let renewed = lease.map_or("", |lease| text(lease, "spec.renewTime"));
        let known = (heartbeat.to_owned(), renewed.to_owned());
        // What is seen first counts as said just now, but that nothing was ever said counts from the beginning.
        let since = match (said, lease) {
            (None, None) => time(node, "metadata.creationTimestamp")?,
            _ => now,
        };
        let probe = self
            .probes
            .entry(node.name().to_owned())
            .or_insert_with(|| (known.clone(), since));
        if probe.0 != known {
            *probe = (known, now);
        }
        until_silent(probe.1, grace)
    }

    /// Says that a node is known, some time after it was seen first; gives how long that still takes. Of one that is ready when
    /// it is seen first, as simulated ones are, nothing is said.
    fn greet(&mut self, cx: &Cx<'_>, node: &Value) -> Option<Duration> {
        let now = cx.now();
        let was_ready = !self.unready().contains(node.uid());
        let (_, due) = self.known.entry(node.name().to_owned()).or_insert_with(|| {
            let is_told = !(was_ready && is_simulated(node));
            let due = now.saturating_add(MONITOR).ok().filter(|_| is_told);
            (node.uid().to_owned(), due)
        });
        let left = until((*due)?, now);
        if left.is_none() {
            *due = None;
            let text = format!("Node {0} event: Registered Node {0} in Controller", node.name());
            tell(cx, node.name(), node.uid(), "RegisteredNode", text);
        }
        left
    }
}

/// The labels for older clients that a node lacks.
fn old_labels(node: &Value) -> Option<Value> {
    let labels = string_map(node, "labels");
    let missing: Map = OLD_LABELS
        .iter()
        .filter_map(|(old, new)| {
            let value = labels.get(*new)?;
            (labels.get(*old) != Some(value)).then(|| ((*old).to_owned(), value.clone()))
        })
        .collect();
    (!missing.is_empty()).then_some(Value::Object(missing))
}

/// The conditions of a node of which nothing is known any more, or never was.
fn unknown(node: &Value, stamp: &str) -> Vec<Value> {
    let mut conditions = list(node, "status.conditions").to_vec();
    for kind in PROBED {
        match conditions.iter_mut().find(|known| text(known, "type") == kind) {
            Some(known) if text(known, "status") != "Unknown" => {
                known["status"] = json!("Unknown");
                known["reason"] = json!("NodeStatusUnknown");
                known["message"] = json!("Kubelet stopped posting node status.");
                known["lastTransitionTime"] = json!(stamp);
            }
            Some(_) => {}
            None => conditions.push(json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": at(node, "metadata.creationTimestamp"), "lastTransitionTime": stamp,
            })),
        }
    }
    conditions
}

async fn make_unknown(cx: &mut Cx<'_>, node: &Value) -> Result<Value, kube::Error> {
    let conditions = unknown(node, &cx.stamp());
    cx.patch(
        Res::Nodes,
        node,
        "/status",
        json!({"status": {"conditions": conditions}}),
    )
    .await
}

/// Pods of a node that is not ready are not ready either.
async fn pods_not_ready(cx: &mut Cx<'_>, node: &Value) -> Result<(), kube::Error> {
    let pods = on_node(cx.cache, node.name());
    let stamp = cx.stamp();
    for pod in pods {
        let mut conditions = list(&pod, "status.conditions").to_vec();
        let Some(ready) = conditions
            .iter_mut()
            .find(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True")
        else {
            continue;
        };
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(stamp);
        cx.patch(
            Res::Pods,
            &pod,
            "/status",
            json!({"status": {"conditions": conditions}}),
        )
        .await?;
        cx.warning(Res::Pods, &pod, "NodeNotReady", "Node is not ready".to_owned());
    }
    Ok(())
}

fn on_node(cache: &Cache, node: &str) -> Vec<std::sync::Arc<Value>> {
    cache
        .all(Res::Pods)
        .filter(|pod| text(pod, "spec.nodeName") == node)
        .cloned()
        .collect()
}

/// The pods of a node, by namespace and name: those to evict now, those to evict later, and the time of the next eviction.
#[derive(Default)]
struct Evicted {
    now: BTreeSet<(String, String)>,
    later: BTreeMap<(String, String), Timestamp>,
    next: Option<Duration>,
}

/// Says something about a pod that has to do with the taints of its node.
fn tell_pod(cx: &Cx<'_>, namespace: &str, name: &str, what: &str) {
    let reference = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectReference::default()
    };
    cx.recorder.named("taint-eviction-controller").event(
        &reference,
        EventType::Normal,
        "TaintManagerEviction",
        format!("{what} {namespace}/{name}"),
    );
}

/// Says of pods that were to go from a node, and need not any more, that they stay.
fn tell_who_stays(cx: &Cx<'_>, before: &BTreeMap<(String, String), Timestamp>, evicted: &Evicted) {
    let stay = before
        .keys()
        .filter(|pod| !evicted.later.contains_key(*pod) && !evicted.now.contains(*pod));
    for (namespace, name) in stay {
        let pod = cx.cache.get(Res::Pods, namespace, name);
        if pod.is_some_and(|pod| !pod.is_terminating()) {
            tell_pod(cx, namespace, name, "Cancelling deletion of Pod");
        }
    }
}

/// Deletes the pods whose time on the node is over. Once it is said when one has to go, that holds as long as it has to.
async fn evict(
    cx: &mut Cx<'_>,
    node: &Value,
    before: &BTreeMap<(String, String), Timestamp>,
) -> Result<Evicted, kube::Error> {
    let mut evicted = Evicted::default();
    if !list(node, "spec.taints")
        .iter()
        .any(|taint| text(taint, "effect") == "NoExecute")
    {
        return Ok(evicted);
    }
    let now = cx.now();
    let mut due = BTreeMap::new();
    for pod in on_node(cx.cache, node.name()) {
        if pod.is_terminating() || is_over(&pod) {
            continue;
        }
        let key = (pod.namespace().to_owned(), pod.name().to_owned());
        let at = leaves_at(node, &pod, now).map(|at| match before.get(&key) {
            Some(said) if at > now => *said,
            _ => at,
        });
        match at.map(|at| (at, until(at, now))) {
            Some((at, Some(left))) => {
                evicted.later.insert(key, at);
                evicted.next = Some(evicted.next.map_or(left, |next| next.min(left)));
            }
            Some((_, None)) => {
                due.insert(key, pod);
            }
            None => {}
        }
    }
    for ((namespace, name), pod) in due {
        tell_pod(cx, &namespace, &name, "Marking for deletion Pod");
        evicted.now.insert((namespace, name));
        let mut target = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": rfc3339(cx.clock.now_seconds()),
        });
        if pod.generation() > 0 {
            target["observedGeneration"] = json!(pod.generation());
        }
        let mut conditions = list(&pod, "status.conditions").to_vec();
        conditions.push(target);
        cx.patch(
            Res::Pods,
            &pod,
            "/status",
            json!({"status": {"conditions": conditions}}),
        )
        .await?;
        cx.delete(Res::Pods, &pod, None).await?;
    }
    Ok(evicted)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn node(status: &str, spec: Value) -> Value {
        json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    #[rstest]
    #[case(node("True", json!({})), None)]
    #[case(node("False", json!({})), Some("not-ready:NoSchedule not-ready:NoExecute"))]
    #[case(node("Unknown", json!({})), Some("unreachable:NoSchedule unreachable:NoExecute"))]
    #[case(node("True", json!({"unschedulable": true})), Some("unschedulable:NoSchedule"))]
    #[case(node("True", json!({"taints": [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]})), Some(""))]
    #[case(node("True", json!({"taints": [{"key": "mine", "effect": "NoSchedule"}]})), None)]
    #[case(
        node("Unknown", json!({"taints": [{"key": "mine", "effect": "NoExecute"}, {"key": NOT_READY, "effect": "NoExecute"}]})),
        Some("mine:NoExecute unreachable:NoSchedule unreachable:NoExecute")
    )]
    fn taints_of_conditions(#[case] node: Value, #[case] expected: Option<&str>) {
        let got = shown(&node);
        assert_eq!(got.as_deref(), expected);
    }

    fn shown(node: &Value) -> Option<String> {
        taints(node, true, "now").map(|taints| {
            let words: Vec<String> = taints
                .iter()
                .map(|taint| {
                    format!(
                        "{}:{}",
                        text(taint, "key").trim_start_matches("node.kubernetes.io/"),
                        text(taint, "effect")
                    )
                })
                .collect();
            words.join(" ")
        })
    }

    /// Conditions of a node as `Type=Status`; those that become unknown when it is silent: `-` for one that it never reported.
    #[rstest]
    #[case(
        "Ready=True MemoryPressure=False DiskPressure=False PIDPressure=False",
        "Ready MemoryPressure DiskPressure PIDPressure"
    )]
    #[case("Ready=True", "Ready MemoryPressure- DiskPressure- PIDPressure-")]
    #[case("", "Ready- MemoryPressure- DiskPressure- PIDPressure-")]
    #[case(
        "Mine=True Ready=False",
        "Mine=True Ready MemoryPressure- DiskPressure- PIDPressure-"
    )]
    #[case(
        "Ready=False NetworkUnavailable=True PIDPressure=True",
        "Ready NetworkUnavailable=True PIDPressure MemoryPressure- DiskPressure-"
    )]
    fn what_is_known_of_silent_nodes(#[case] conditions: &str, #[case] expected: &str) {
        let conditions: Vec<Value> = conditions
            .split_whitespace()
            .filter_map(|short| short.split_once('='))
            .map(|(kind, status)| json!({"type": kind, "status": status, "reason": "R"}))
            .collect();
        let node = json!({"metadata": {"creationTimestamp": "then"}, "status": {"conditions": conditions}});
        let words: Vec<String> = unknown(&node, "now")
            .iter()
            .map(|condition| {
                let kind = text(condition, "type");
                match (text(condition, "status"), text(condition, "reason")) {
                    ("Unknown", "NodeStatusUnknown") => kind.to_owned(),
                    ("Unknown", "NodeStatusNeverUpdated") => format!("{kind}-"),
                    (status, _) => format!("{kind}={status}"),
                }
            })
            .collect();
        assert_eq!(words.join(" "), expected);
    }

    /// Conditions as `Type=Status`, in the order of the node.
    #[rstest]
    #[case("Ready=True MemoryPressure=True", Some("memory-pressure:NoSchedule"))]
    #[case(
        "DiskPressure=True PIDPressure=True Ready=True",
        Some("disk-pressure:NoSchedule pid-pressure:NoSchedule")
    )]
    #[case("Ready=True NetworkUnavailable=True", Some("network-unavailable:NoSchedule"))]
    #[case("Ready=True MemoryPressure=False DiskPressure=False", None)]
    #[case("Ready=True MemoryPressure=Unknown", None)]
    #[case(
        "MemoryPressure=True Ready=Unknown",
        Some("memory-pressure:NoSchedule unreachable:NoSchedule unreachable:NoExecute")
    )]
    #[case("MemoryPressure=True", Some("memory-pressure:NoSchedule"))]
    #[case("", None)]
    fn taints_of_pressures(#[case] conditions: &str, #[case] expected: Option<&str>) {
        let conditions: Vec<Value> = conditions
            .split_whitespace()
            .filter_map(|short| short.split_once('='))
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect();
        let node = json!({"metadata": {"name": "n"}, "spec": {}, "status": {"conditions": conditions}});
        assert_eq!(shown(&node).as_deref(), expected);
    }

    #[rstest]
    #[case(json!([]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}]), None)]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]), Some(400))]
    #[case(json!([{"operator": "Exists"}]), None)]
    #[case(json!([{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Equal", "value": "v"}]), Some(100))]
    #[case(json!([{"key": NOT_READY, "operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 300}]), None)]
    #[case(json!([{"operator": "Exists", "tolerationSeconds": 300}, {"key": NOT_READY, "operator": "Exists"}]), Some(400))]
    #[case(
        json!([{"operator": "Exists", "tolerationSeconds": 300}, {"key": NOT_READY, "operator": "Exists", "tolerationSeconds": 5}]), Some(400)
    )]
    fn when_pods_leave(#[case] tolerations: Value, #[case] expected: Option<i64>) {
        let node = json!({"spec": {"taints": [{"key": NOT_READY, "effect": "NoExecute", "timeAdded": "1970-01-01T00:01:40Z"}]}});
        let pod = json!({"spec": {"tolerations": tolerations}});
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(leaves_at(&node, &pod, now).map(Timestamp::as_second), expected);
    }
}
