//! The next actions of a daemon set, and its status: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::daemonset_pods::{GENERATION_LABEL, any_pod, generation, hash_of, node_of, wanted};
use super::pods::{availability, scaled};
use crate::runtime::{is_over, is_ready};
use crate::runtime::{number, text};

/// The actions to take now.
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

/// A set and its state.
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
    /// The pods by node, without deleted pods that have ended.
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
