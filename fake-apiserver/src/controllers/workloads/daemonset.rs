//! DaemonSets: a pod on every node that fits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use shared_json::{Value, json};

use super::claim::{claim, concerned};
use super::pod_control::{self, SlowStart};
use super::pods::{availability, from_template, is_over, is_ready, owner_reference, scaled};
use super::revisions::{ensure, truncate, without_doubles};
use super::statefulset::claimed;
use crate::controllers::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, list, number, text};
use crate::meta::{ObjectMeta as _, string_map};
use crate::nodes::{node_matches, tolerates_all};

const REVISION_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// What every daemon's pod tolerates: key and effect.
const TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// How many pods one pass makes or deletes at most (the real one's).
const BURST_MAX: usize = 250;

/// How long the first pod that fails after another on its node stays, and the longest that any does (the controller's).
const FAILED_DELAY_MIN: Duration = Duration::from_secs(1);
const FAILED_DELAY_MAX: Duration = Duration::from_secs(15 * 60);

/// The controller.
#[derive(Default)]
pub(in crate::controllers) struct DaemonSets {
    failures: Failures,
    /// By uid: the version of a set in which nothing is new but the status that a pass has just written.
    written: BTreeMap<String, String>,
}

/// Where pods have failed: how long the next one that fails stays, and since when.
#[derive(Default)]
struct Failures(BTreeMap<(String, i64, String), (Duration, Timestamp)>);

impl Failures {
    fn key(set: &Value, node: &str) -> (String, i64, String) {
        let seen = number(set, "status.observedGeneration", 0);
        (set.uid().to_owned(), seen, node.to_owned())
    }

    /// How long a failed pod on that node stays; none if it goes at once.
    fn delay(&self, set: &Value, node: &str, now: Timestamp) -> Option<Duration> {
        let (delay, since) = self.0.get(&Self::key(set, node))?;
        (passed(*since, now) < *delay).then_some(*delay)
    }

    /// A failed pod goes: the next one stays twice as long as this one would have. After a long time all is forgotten.
    fn note(&mut self, set: &Value, node: &str, now: Timestamp) {
        self.0
            .retain(|_, (_, since)| passed(*since, now) <= FAILED_DELAY_MAX * 2);
        let key = Self::key(set, node);
        let delay = self
            .0
            .get(&key)
            .map_or(FAILED_DELAY_MIN, |(delay, _)| (*delay * 2).min(FAILED_DELAY_MAX));
        self.0.insert(key, (delay, now));
    }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// Of which revision a pod is, or which one a revision is.
fn hash_of(object: &Value) -> &str {
    string_map(object, "labels")
        .get(REVISION_LABEL)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number of the template that pods were labelled with before there were revisions.
fn generation(set: &Value) -> Option<String> {
    string_map(set, "annotations")
        .get(GENERATION_ANNOTATION)
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<i64>().ok())
        .map(|number| number.to_string())
}

/// What all pods of a set are like.
fn any_pod(set: &Value) -> Value {
    let mut pod = from_template(
        &set["spec"]["template"],
        owner_reference("apps/v1", "DaemonSet", set),
    );
    let mut tolerations = list(&pod, "spec.tolerations").to_vec();
    let network = pod.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let more = network.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    for (key, effect) in TOLERATIONS.into_iter().chain(more) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        let same = |known: &Value| {
            ["key", "effect", "operator", "value"]
                .iter()
                .all(|field| text(known, field) == text(&toleration, field))
        };
        if tolerations.contains(&toleration) {
            continue;
        }
        if tolerations.iter().any(same) {
            // One for a time becomes one for good.
            for known in tolerations.iter_mut().filter(|known| same(known)) {
                *known = toleration.clone();
            }
        } else {
            tolerations.push(toleration);
        }
    }
    pod["spec"]["tolerations"] = Value::from(tolerations);
    pod
}

/// The pod for a node.
fn new_pod(set: &Value, node: &str, hash: &str) -> Value {
    let mut pod = any_pod(set);
    pod["metadata"]["generateName"] = Value::from(format!("{}-", set.name()));
    pod["metadata"]["labels"][REVISION_LABEL] = Value::from(hash);
    if let Some(generation) = generation(set) {
        pod["metadata"]["labels"][GENERATION_LABEL] = Value::from(generation);
    }
    // The scheduler binds it, but to that node only.
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let terms = json!([{"matchFields": [field]}]);
    if !pod.pointer("/spec/affinity").is_some_and(Value::is_object) {
        pod["spec"]["affinity"] = json!({});
    }
    match pod.pointer_mut(required) {
        Some(selector) => selector["nodeSelectorTerms"] = terms,
        None => {
            pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": terms});
        }
    }
    pod
}

/// The node that a pod is on, or is meant for.
fn node_of(pod: &Value) -> &str {
    let bound = text(pod, "spec.nodeName");
    if !bound.is_empty() {
        return bound;
    }
    let terms = pod
        .pointer(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        )
        .and_then(Value::as_array);
    terms
        .into_iter()
        .flatten()
        .flat_map(|term| list(term, "matchFields"))
        .find(|field| text(field, "key") == "metadata.name")
        .and_then(|field| field.pointer("/values/0"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a node is to have a pod like [this](any_pod), and whether one that is there may stay.
fn wanted(pod: &Value, node: &Value) -> (bool, bool) {
    let named = text(pod, "spec.nodeName");
    if !(named.is_empty() || named == node.name()) || !node_matches(pod, node) {
        return (false, false);
    }
    let taints = list(node, "spec.taints");
    let run = tolerates_all(pod, taints, &["NoSchedule", "NoExecute"]);
    let stay = tolerates_all(pod, taints, &["NoExecute"]);
    (run, stay)
}

/// Whether a node that has changed concerns a set with these pods. Pods that are only meant for the node do not count.
fn concerns(set: &Value, node: &Value, pods: &[Arc<Value>]) -> bool {
    let (run, stay) = wanted(&any_pod(set), node);
    let has_pod = pods.iter().any(|pod| text(pod, "spec.nodeName") == node.name());
    if has_pod {
        !stay || number(set, "status.numberMisscheduled", 0) > 0
    } else {
        run
    }
}

/// Whether a change of a pod leaves all as it is that a pass looks at.
fn is_the_same(old: &Value, new: &Value) -> bool {
    let seen = |pod: &Value| {
        let phase = pod.pointer("/status/phase").cloned();
        (
            pod.get("metadata").cloned(),
            pod.get("spec").cloned(),
            phase,
            condition(pod, "Ready").cloned(),
        )
    };
    let ((mut one, spec, phase, ready), (mut other, other_spec, other_phase, other_ready)) =
        (seen(old), seen(new));
    for metadata in [&mut one, &mut other] {
        for field in ["resourceVersion", "managedFields"] {
            if let Some(metadata) = metadata.as_mut().and_then(Value::as_object_mut) {
                metadata.remove(field);
            }
        }
    }
    (one, spec, phase, ready) == (other, other_spec, other_phase, other_ready)
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// Nodes that are to get a pod.
    pub create: Vec<String>,
    pub delete: Vec<String>,
    /// Those among them that have failed.
    pub failed: Vec<String>,
}

/// A number that may be less than nothing.
fn count(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or_default()
}

/// What a set is and has.
pub(super) struct View<'a> {
    set: &'a Value,
    nodes: &'a [Arc<Value>],
    pods: &'a [Arc<Value>],
    hash: &'a str,
    now: Timestamp,
    /// Nodes whose failed pods stay for now.
    held: &'a BTreeSet<String>,
    /// Of each node, whether it is to have a pod, and whether one that is there may stay.
    wanted: Vec<(bool, bool)>,
    /// The pods by node, without those that have ended and only wait for somebody to let them go.
    by_node: BTreeMap<&'a str, Vec<&'a Arc<Value>>>,
}

/// A node, as an update sees it.
struct Place<'a> {
    node: &'a str,
    /// Whether it is to have a pod; none if there is no such node.
    run: Option<bool>,
    /// Pods of the present revision, and of others.
    new: Vec<&'a Arc<Value>>,
    old: Vec<&'a Arc<Value>>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        set: &'a Value,
        nodes: &'a [Arc<Value>],
        pods: &'a [Arc<Value>],
        hash: &'a str,
        now: Timestamp,
        held: &'a BTreeSet<String>,
    ) -> Self {
        let any_pod = any_pod(set);
        let mut by_node: BTreeMap<&str, Vec<&Arc<Value>>> = BTreeMap::new();
        for pod in pods {
            if !(pod.is_terminating() && is_over(pod)) {
                by_node.entry(node_of(pod)).or_default().push(pod);
            }
        }
        by_node.remove("");
        Self {
            wanted: nodes.iter().map(|node| wanted(&any_pod, node)).collect(),
            set,
            nodes,
            pods,
            hash,
            now,
            held,
            by_node,
        }
    }

    /// Each node, whether it is to have a pod, whether one may stay, and those that are there.
    fn each(&self) -> impl Iterator<Item = (&'a str, (bool, bool), &[&'a Arc<Value>])> {
        self.nodes.iter().zip(&self.wanted).map(|(node, wanted)| {
            let pods = self.by_node.get(node.name()).map(Vec::as_slice);
            (node.name(), *wanted, pods.unwrap_or_default())
        })
    }

    /// Of each node that has pods or is to have one, whether it is to, if there is such a node, and the pods that stay.
    fn places(&self) -> Vec<Place<'a>> {
        let mut out = Vec::new();
        for (node, (run, _), pods) in self.each() {
            if run || !pods.is_empty() {
                out.push(self.place(node, Some(run), pods));
            }
        }
        let nodes = self.node_names();
        let gone = self.by_node.iter().filter(|(node, _)| !nodes.contains(*node));
        out.extend(gone.map(|(node, pods)| self.place(node, None, pods)));
        out
    }

    fn node_names(&self) -> BTreeSet<&'a str> {
        self.nodes.iter().map(|node| node.name()).collect()
    }

    fn place(&self, node: &'a str, run: Option<bool>, pods: &[&'a Arc<Value>]) -> Place<'a> {
        let alive = pods.iter().copied().filter(|pod| !pod.is_terminating());
        let (new, old) = alive.partition(|pod| self.is_updated(pod));
        Place { node, run, new, old }
    }

    fn is_updated(&self, pod: &Value) -> bool {
        let labelled = |wanted: String| {
            string_map(pod, "labels")
                .get(GENERATION_LABEL)
                .and_then(Value::as_str)
                == Some(wanted.as_str())
        };
        hash_of(pod) == self.hash || generation(self.set).is_some_and(labelled)
    }

    fn is_available(&self, pod: &Value) -> bool {
        availability(pod, number(self.set, "spec.minReadySeconds", 0), self.now).0 && !pod.is_terminating()
    }

    pub(super) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let surges = self.surge(1) > 0;
        for (node, (run, stay), pods) in self.each() {
            let is_bare = pods.is_empty();
            let mut is_held = self.held.contains(node);
            let mut running = Vec::new();
            for pod in pods.iter().copied().filter(|pod| !pod.is_terminating()) {
                if stay && !is_over(pod) {
                    running.push(pod);
                    continue;
                }
                if stay && text(pod, "status.phase") == "Failed" {
                    if is_held {
                        continue;
                    }
                    // The next one waits from now on.
                    is_held = true;
                }
                plan.delete.push(pod.name().to_owned());
                if stay {
                    plan.failed.push(pod.name().to_owned());
                }
            }
            // Beside one that is on its way out a new one is made only where two may be at once.
            if run && running.is_empty() && (is_bare || surges) {
                plan.create.push(node.to_owned());
            }
            running.sort_by(|one, other| {
                let age = |pod: &&'a Arc<Value>| {
                    (
                        text(pod, "spec.nodeName").is_empty(),
                        text(pod, "metadata.creationTimestamp"),
                        pod.name(),
                    )
                };
                age(one).cmp(&age(other))
            });
            let excess = if surges {
                self.excess_beside(&running)
            } else {
                running
                    .split_first()
                    .map(|(_, rest)| rest.to_vec())
                    .unwrap_or_default()
            };
            plan.delete
                .extend(excess.into_iter().map(|pod| pod.name().to_owned()));
        }
        // Bound ones go with their node: others see to that.
        let nodes = self.node_names();
        for pod in self.pods {
            let is_bound = !text(pod, "spec.nodeName").is_empty();
            let meant_for = node_of(pod);
            let known = is_bound || meant_for.is_empty() || nodes.contains(meant_for);
            if !known && !pod.is_terminating() {
                plan.delete.push(pod.name().to_owned());
            }
        }
        if plan == Plan::default() {
            self.update(&mut plan);
        }
        plan
    }

    /// Which of a node's pods, the oldest first, are too many where two may be at once: one of this revision and an older one that
    /// is ready for as long as the other is not available.
    fn excess_beside(&self, running: &[&'a Arc<Value>]) -> Vec<&'a Arc<Value>> {
        if running.len() < 2 {
            return Vec::new();
        }
        let (mut new, mut old, mut excess) = (None, None, Vec::new());
        for pod in running {
            let first = if self.is_updated(pod) { &mut new } else { &mut old };
            if first.is_some() {
                excess.push(*pod);
            } else {
                *first = Some(*pod);
            }
        }
        if let (Some(new), Some(old)) = (new, old)
            && (!is_ready(old) || self.is_available(new))
        {
            excess.push(old);
        }
        excess
    }

    /// How many of so many nodes may have two pods at once.
    fn surge(&self, nodes: i64) -> i64 {
        if text(self.set, "spec.updateStrategy.type") == "OnDelete" {
            return 0;
        }
        scaled(
            self.set.pointer("/spec/updateStrategy/rollingUpdate/maxSurge"),
            nodes,
            true,
            0,
        )
    }

    /// Replaces pods of older revisions, as many at a time as may be unavailable.
    fn update(&self, plan: &mut Plan) {
        if text(self.set, "spec.updateStrategy.type") == "OnDelete" {
            return;
        }
        let places = self.places();
        let desired = places.iter().filter(|place| place.run == Some(true)).count();
        let desired = i64::try_from(desired).unwrap_or(i64::MAX);
        let surge = self.surge(desired);
        if surge > 0 {
            self.update_beside(plan, &places, surge, desired);
            return;
        }
        let allowed = scaled(
            self.set
                .pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"),
            desired,
            true,
            1,
        );
        // One at least: nothing would ever be replaced.
        let allowed = if desired > 0 { allowed.max(1) } else { allowed };
        let mut unavailable = 0;
        let (mut useless, mut candidates) = (Vec::new(), Vec::new());
        for place in &places {
            match (place.new.as_slice(), place.old.as_slice()) {
                ([new], []) => unavailable += i64::from(!self.is_available(new)),
                ([], [old]) if self.is_available(old) => candidates.push(old.name().to_owned()),
                ([], [old]) => {
                    useless.push(old.name().to_owned());
                    unavailable += 1;
                }
                // None, or more than one: that is seen to first.
                _ => unavailable += 1,
            }
        }
        plan.delete.extend(useless);
        plan.delete
            .extend(candidates.into_iter().take(count(allowed - unavailable)));
    }

    /// Puts pods of the new revision beside older ones, as many at a time as there may be too many, and beside all that are
    /// not available. An older one goes when the new one is available; one on a node that is no longer wanted when enough
    /// others are. As long as one that is to be replaced is on a node that is gone, nothing is done at all.
    fn update_beside(&self, plan: &mut Plan, places: &[Place<'_>], surge: i64, desired: i64) {
        let (mut surging, mut available, mut delete) = (0, 0, Vec::new());
        let (mut beside_useless, mut candidates, mut unwanted) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let (new, old) = match (place.new.as_slice(), place.old.as_slice()) {
                (new @ ([] | [_]), old @ ([] | [_])) => (new.first(), old.first()),
                _ => {
                    surging += 1;
                    continue;
                }
            };
            available += i64::from(old.or(new).is_some_and(|pod| self.is_available(pod)));
            let Some(old) = old else { continue };
            match new {
                Some(new) if self.is_available(new) => delete.push(old.name().to_owned()),
                Some(_) => surging += 1,
                None => match (self.is_available(old), place.run) {
                    (_, None) => return,
                    (false, Some(false)) => delete.push(old.name().to_owned()),
                    (false, Some(true)) => beside_useless.push(place.node.to_owned()),
                    (true, Some(false)) => unwanted.push(old.name().to_owned()),
                    (true, Some(true)) => candidates.push(place.node.to_owned()),
                },
            }
        }
        plan.delete.extend(delete);
        plan.delete
            .extend(unwanted.into_iter().take(count(available - desired)));
        plan.create.extend(beside_useless);
        plan.create
            .extend(candidates.into_iter().take(count(surge - surging)));
    }

    pub(super) fn status(&self, collisions: Option<i64>) -> (Value, Option<Duration>) {
        let (mut desired, mut current, mut misscheduled) = (0, 0, 0);
        let (mut ready, mut available, mut updated) = (0, 0, 0);
        let mut next: Option<Duration> = None;
        let min_ready = number(self.set, "spec.minReadySeconds", 0);
        for (_, (run, _), pods) in self.each() {
            if !run {
                misscheduled += i64::from(!pods.is_empty());
                continue;
            }
            desired += 1;
            // Of several the oldest counts, of those that are on a node. Of those of one second that is the one before the update.
            let age = |pod: &'a Arc<Value>| {
                (
                    text(pod, "spec.nodeName").is_empty(),
                    text(pod, "metadata.creationTimestamp"),
                    self.is_updated(pod),
                    pod.name(),
                )
            };
            let Some(pod) = pods
                .iter()
                .copied()
                .min_by(|one, other| age(one).cmp(&age(other)))
            else {
                continue;
            };
            current += 1;
            updated += i64::from(self.is_updated(pod));
            ready += i64::from(is_ready(pod));
            available += i64::from(availability(pod, min_ready, self.now).0);
            next = [next, availability(pod, min_ready, self.now).1]
                .into_iter()
                .flatten()
                .min();
        }
        let mut status = json!({
            "currentNumberScheduled": current, "desiredNumberScheduled": desired, "numberMisscheduled": misscheduled,
            "numberReady": ready, "observedGeneration": self.set.generation(),
        });
        for (field, count) in [
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ] {
            if count > 0 {
                status[field] = Value::from(count);
            }
        }
        // What others may have written is kept.
        if let Some(conditions) = self.set["status"].get("conditions") {
            status["conditions"] = conditions.clone();
        }
        if let Some(collisions) = collisions {
            status["collisionCount"] = Value::from(collisions);
        }
        (status, next)
    }
}

async fn act(
    cx: &mut Cx<'_>,
    set: &Value,
    pods: &[Arc<Value>],
    hash: &str,
    plan: Plan,
) -> Result<(), kube::Error> {
    let (mut pace, mut result) = (SlowStart::new(), Ok(()));
    for node in plan.create.iter().take(BURST_MAX) {
        if !pace.goes_on() {
            break;
        }
        let made = pod_control::make(cx, Res::DaemonSets, set, new_pod(set, node, hash)).await;
        if made.is_err() {
            pace.failed();
        }
        result = result.and(made.map(|_| ()));
    }
    for name in plan.delete.iter().take(BURST_MAX) {
        let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
            continue;
        };
        if plan.failed.contains(name) {
            let (namespace, node) = (set.namespace(), node_of(pod));
            if text(pod, "status.phase") == "Succeeded" {
                let text = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
                );
                cx.normal(Res::DaemonSets, set, "SucceededDaemonPod", text);
            } else {
                let text =
                    format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
                cx.warning(Res::DaemonSets, set, "FailedDaemonPod", text);
            }
        }
        result = result.and(pod_control::delete(cx, Res::DaemonSets, set, pod).await);
    }
    result
}

#[async_trait]
impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::DaemonSets, Res::Pods, Res::Nodes, Res::Revisions]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::DaemonSets
                if self.written.get(object.uid()).map(String::as_str) == Some(object.resource_version()) =>
            {
                Vec::new()
            }
            Res::DaemonSets => vec![Key::of(object)],
            Res::Pods if old.is_some_and(|old| is_the_same(old, object)) => Vec::new(),
            Res::Pods => concerned(cache, Res::DaemonSets, object, old),
            Res::Nodes => {
                let relevant = |node: &Value| {
                    (
                        node.pointer("/spec/taints").cloned(),
                        node.pointer("/metadata/labels").cloned(),
                    )
                };
                // One that is gone concerns none.
                let Some(node) = cache.get(Res::Nodes, "", object.name()) else {
                    return Vec::new();
                };
                if old.is_some_and(|old| relevant(old) == relevant(object)) {
                    return Vec::new();
                }
                cache
                    .all(Res::DaemonSets)
                    .filter(|set| concerns(set, node, &cache.owned(Res::Pods, set.uid())))
                    .map(|set| Key::of(set))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = cx.cache.get(Res::DaemonSets, &key.namespace, &key.name).cloned() else {
            self.written.clear();
            return Ok(Next::Change);
        };
        // Its revisions may be gone before its pods: nothing can be told of it any more.
        if set.is_terminating() {
            return Ok(Next::Change);
        }
        let mut pods = claim(cx, Res::DaemonSets, &set, Res::Pods).await?;
        let revisions = claimed(cx, Res::DaemonSets, &set).await?;
        let revisions = without_doubles(cx, &set, revisions, &mut pods, REVISION_LABEL).await?;
        let history = ensure(cx, Res::DaemonSets, &set, revisions, REVISION_LABEL).await?;
        let hash = hash_of(&history.update).to_owned();
        let nodes: Vec<Arc<Value>> = cx.cache.all(Res::Nodes).cloned().collect();
        let now = cx.now();
        let delays: BTreeMap<&str, Duration> = pods
            .iter()
            .filter(|pod| text(pod, "status.phase") == "Failed")
            .filter_map(|pod| Some((node_of(pod), self.failures.delay(&set, node_of(pod), now)?)))
            .collect();
        let held: BTreeSet<String> = delays.keys().map(|node| (*node).to_owned()).collect();
        let plan = View::new(&set, &nodes, &pods, &hash, now, &held).plan();
        for pod in pods.iter().filter(|pod| text(pod, "status.phase") == "Failed") {
            if plan.failed.iter().any(|name| name == pod.name()) {
                self.failures.note(&set, node_of(pod), now);
            }
        }
        let mut result = act(cx, &set, &pods, &hash, plan).await;
        if result.is_ok() {
            let live = |revision: &Value| pods.iter().any(|pod| hash_of(pod) == hash_of(revision));
            result = truncate(cx, &set, &history, live, true).await;
        }
        let later = delays.into_values().min();
        let pods = cx.cache.owned(Res::Pods, set.uid());
        let (status, next) =
            View::new(&set, &nodes, &pods, &hash, cx.now(), &held).status(history.collisions);
        if cx.set_status(Res::DaemonSets, &set, &status).await?
            && let Some(written) = cx.cache.get(Res::DaemonSets, &key.namespace, &key.name)
        {
            let version = written.resource_version().to_owned();
            self.written.insert(set.uid().to_owned(), version);
        }
        result?;
        Ok([later, next].into_iter().flatten().min().into())
    }
}

#[cfg(test)]
#[path = "daemonset_tests.rs"]
mod tests;
