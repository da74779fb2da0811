//! The invariants of a history, checked after every change.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::{Value, json};

use super::numbers::Numbers;
use crate::histories::deeds::Deeds;
use crate::histories::pod::Pod;
use crate::history::{Change, ChangeKind, number, text};

/// Advanced DaemonSets, as histories name them.
pub(super) const RESOURCE: &str = "daemonsets.kruise";
/// How many nodes a cluster of histories has.
pub(super) const NODES: i64 = 3;

/// The node that a pod is made for.
fn node_of(pod: &Value) -> String {
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let field = format!("{terms}/0/matchFields/0/values/0");
    match text(pod, "/spec/nodeName") {
        node if node.is_empty() => text(pod, &field),
        node => node,
    }
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut world = World::default();
    for change in history {
        let name = change.name();
        let gone = change.kind == ChangeKind::Deleted;
        match change.resource.as_str() {
            RESOURCE => world.set = Value::clone(&change.object),
            "controllerrevisions" if !gone => world.note_revision(&change.object),
            "pods" => {
                let before = world.pods.get(&name).map(|(_, pod)| pod.clone());
                if gone {
                    world.pods.remove(&name);
                    continue;
                }
                let node = node_of(&change.object);
                let after = Pod::of(&change.object, before.as_ref(), change.at_ms);
                world.pods.insert(name.clone(), (node.clone(), after.clone()));
                let moment = Moment {
                    numbers: Numbers::of(&world.set, NODES),
                    world: &world,
                    by_hand: deeds.deleted.contains(&after.uid),
                    at_ms: change.at_ms,
                };
                let missing = moment.missing(&node, before.as_ref(), &after);
                let fault = moment.fault(&node, before.as_ref(), &after, &missing);
                world.missing = missing;
                let fault = fault.filter(|_| !deeds.outrun(change.at_ms));
                out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
            }
            _ => {}
        }
    }
    out
}

/// The set, its pods with their nodes, and its newest revision.
struct World {
    set: Value,
    pods: BTreeMap<String, (String, Pod)>,
    newest: (i64, String),
    /// The nodes whose pod in service the controller has taken away, and that have none yet.
    missing: BTreeSet<String>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            set: json!({}),
            pods: BTreeMap::new(),
            newest: (0, String::new()),
            missing: BTreeSet::new(),
        }
    }
}

impl World {
    fn note_revision(&mut self, revision: &Value) {
        let found = number(revision, "/revision");
        if found >= self.newest.0 {
            let name = text(revision, "/metadata/name");
            let hash = name.rsplit('-').next().unwrap_or_default();
            self.newest = (found, hash.to_owned());
        }
    }

    fn is_new(&self, pod: &Pod) -> bool {
        pod.revision == self.newest.1
    }
}

struct Moment<'a> {
    numbers: Numbers,
    world: &'a World,
    by_hand: bool,
    at_ms: i64,
}

impl Moment<'_> {
    /// How many nodes that fit have such a pod.
    fn nodes(&self, which: impl Fn(&Pod) -> bool) -> i64 {
        let pods = self.world.pods.values();
        let nodes: BTreeSet<&String> = pods
            .filter(|(node, pod)| self.numbers.fits(node) && which(pod))
            .map(|(node, _)| node)
            .collect();
        i64::try_from(nodes.len()).unwrap_or(i64::MAX)
    }

    /// Whether a pod on a node is in service.
    fn is_served(&self, node: &str) -> bool {
        let mut pods = self.world.pods.values().filter(|(other, _)| other == node);
        pods.any(|(_, pod)| pod.is_available(self.numbers.min_ready_ms, self.at_ms))
    }

    /// The nodes whose pod in service the controller has taken away, after a change of a pod. An old pod that does not serve may be
    /// replaced at any time, and takes nothing away.
    fn missing(&self, node: &str, before: Option<&Pod>, after: &Pod) -> BTreeSet<String> {
        let mut missing = self.world.missing.clone();
        // No change tells when a pod has been ready for long enough.
        missing.retain(|node| !self.is_served(node));
        let goes = |pod: &Pod| pod.ends || pod.held;
        if self.is_served(node) || !self.numbers.fits(node) {
            missing.remove(node);
        } else if let Some(before) = before.filter(|_| !self.by_hand) {
            if before.is_surely_available(self.numbers.min_ready_ms, self.at_ms) {
                missing.insert(node.to_owned());
            } else if !self.world.is_new(before) {
                let begins = !goes(before) && goes(after) || before.is_ready() && !after.is_ready();
                if begins {
                    missing.remove(node);
                }
            }
        }
        missing
    }

    fn fault(
        &self,
        node: &str,
        before: Option<&Pod>,
        after: &Pod,
        missing: &BTreeSet<String>,
    ) -> Option<String> {
        if after.restarts > after.images {
            return Some(format!(
                "{} restarts for {} changes of the image",
                after.restarts, after.images
            ));
        }
        match before {
            None => self.created(node),
            Some(before) => self
                .too_few(missing)
                .or_else(|| self.too_new(node, before, after)),
        }
    }

    /// A pod came to a node that has enough of them, or does not fit.
    fn created(&self, node: &str) -> Option<String> {
        if !self.numbers.fits(node) {
            return Some(format!("created for {node}, which does not fit"));
        }
        let pods = self.world.pods.values();
        let there = pods.filter(|(other, pod)| other == node && !pod.ends && !pod.held);
        let there = i64::try_from(there.count()).unwrap_or(i64::MAX);
        let most = 1 + i64::from(self.numbers.max_surge > 0);
        (there > most).then(|| format!("created as number {there} on {node}"))
    }

    /// More nodes were left without a pod in service than may be. With a partition the controller does not look at all nodes.
    fn too_few(&self, missing: &BTreeSet<String>) -> Option<String> {
        let may_be = self.numbers.max_unavailable;
        let count = i64::try_from(missing.len()).unwrap_or(i64::MAX);
        let more = missing.len() > self.world.missing.len() && self.numbers.partition == 0;
        (more && count > may_be).then(|| {
            let desired = self.numbers.desired;
            format!("taken away as number {count} of {desired}, {may_be} may be missing")
        })
    }

    /// An old pod was replaced, or brought to the new revision, that should have stayed. One with a new pod beside it goes in any case.
    fn too_new(&self, node: &str, before: &Pod, after: &Pod) -> Option<String> {
        let replaced = !before.ends && after.ends || before.revision != after.revision;
        let counts = self.numbers.fits(node) && !self.by_hand && !after.marked && self.numbers.max_surge == 0;
        if !replaced || !counts || self.world.is_new(before) || before.held {
            return None;
        }
        let partition = self.numbers.partition;
        let old = self.nodes(|pod| !pod.ends && !self.world.is_new(pod));
        (old < partition).then(|| format!("replaced, which leaves {old} old ones, {partition} are to stay"))
    }
}

/// The differences between the spec and the set with its pods at the end.
pub(super) fn unlike(set: &Value, pods: &[Value], desired: i64) -> Vec<String> {
    let mut wrongs = Vec::new();
    for counter in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ] {
        let found = number(set, &format!("/status/{counter}"));
        if found != desired {
            wrongs.push(format!("at the end {counter} is {found}, not {desired}"));
        }
    }
    let nodes: BTreeSet<String> = pods.iter().map(node_of).collect();
    if i64::try_from(pods.len()) != Ok(desired) || nodes.len() != pods.len() {
        wrongs.push(format!(
            "at the end there are {} pods on {} nodes",
            pods.len(),
            nodes.len()
        ));
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
