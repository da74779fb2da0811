//! The invariants of a history, checked after every change.
//!
//! A pod in service is deleted, evicted or changed only after the budget has recorded it, if the budget guards that operation. A
//! record is only made while more pods are in service, and not recorded, than must be.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::pod::{Leave, Pod, is_in_service, is_named};
use crate::histories::commits::{LATE_MS, Numbers, in_order, of_whole};
use crate::histories::deeds::Deeds;
use crate::history::{Change, ChangeKind, number, text};

/// PodUnavailableBudgets, as histories name them.
pub(super) const RESOURCE: &str = "podunavailablebudgets";

/// The state at some moment.
#[derive(Default)]
struct World {
    budget: Value,
    replicas: i64,
    pods: BTreeMap<String, Pod>,
    /// How many pods must be in service.
    desired: Numbers,
    /// When a pod went out of service without a record that was due.
    lost_ms: Vec<i64>,
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut world = World::default();
    let mut out = Vec::new();
    for change in in_order(history) {
        let fault = match change.resource.as_str() {
            RESOURCE => world.budget(change),
            "clonesets" => {
                world.replicas = number(&change.object, "/spec/replicas");
                None
            }
            "pods" => world.pod(change, deeds),
            _ => continue,
        };
        world.count(change.at_ms);
        out.extend(fault.map(|fault| format!("at {} ms, {}: {fault}", change.at_ms, change.name())));
    }
    out
}

/// The names that a budget has recorded.
fn recorded(budget: &Value) -> BTreeSet<String> {
    let maps = ["/status/disruptedPods", "/status/unavailablePods"];
    let maps = maps
        .into_iter()
        .filter_map(|map| budget.pointer(map)?.as_object());
    maps.flatten().map(|(name, _)| name.to_string()).collect()
}

/// How many pods must be in service, of so many.
fn desired(budget: &Value, total: i64) -> i64 {
    let at = |field: &str| budget.pointer(field).filter(|value| !value.is_null());
    match (at("/spec/maxUnavailable"), at("/spec/minAvailable")) {
        (Some(most), _) => (total - of_whole(most, total)).max(0),
        (None, Some(least)) => of_whole(least, total),
        (None, None) => 0,
    }
}

/// Whether a budget guards pods from leaving in this way.
fn guards(budget: &Value, leave: Leave) -> bool {
    let listed = text(budget, "/metadata/annotations/kruise.io~1pub-protect-operations");
    let guards = |operation| listed.is_empty() || listed.split(',').any(|listed| listed == operation);
    match leave {
        // A deletion and an eviction look alike.
        Leave::Removal => guards("DELETE") && guards("EVICT"),
        Leave::Update => guards("UPDATE"),
        Leave::Loss => false,
    }
}

impl World {
    /// Writes down how many pods must be in service now.
    fn count(&mut self, at_ms: i64) {
        let total = match self.pods.values().any(|pod| pod.is_active) {
            true => self.replicas,
            false => 0,
        };
        self.desired.set(at_ms, desired(&self.budget, total));
    }

    /// Takes in the budget; gives the error in the records that are new.
    fn budget(&mut self, change: &Change) -> Option<String> {
        let before = recorded(&self.budget);
        self.budget = Value::clone(&change.object);
        let now = recorded(&self.budget);
        let new: Vec<&str> = now.difference(&before).map(String::as_str).collect();
        if new.is_empty() || change.kind == ChangeKind::Deleted {
            return None;
        }
        let in_service = self
            .pods
            .iter()
            .filter(|(name, pod)| pod.in_service && !now.contains(*name));
        let lost = self.lost_ms.iter();
        let lost = lost.filter(|lost_ms| change.at_ms - **lost_ms < LATE_MS);
        let counted = i64::try_from(in_service.count() + lost.count()).unwrap_or(i64::MAX);
        let desired = self.desired.least(change.at_ms);
        (counted < desired).then(|| {
            let new = new.join(", ");
            format!("recorded {new}, which leaves {counted} pods in service, {desired} must be")
        })
    }

    /// Takes in a pod; gives the error in its leave.
    fn pod(&mut self, change: &Change, deeds: &Deeds) -> Option<String> {
        let name = change.name();
        let before = match change.kind {
            ChangeKind::Deleted => self.pods.remove(&name),
            _ => self.pods.get(&name).cloned(),
        };
        let now = Pod::of(change, before.as_ref());
        if change.kind != ChangeKind::Deleted {
            self.pods.insert(name.clone(), now.clone());
        }
        let before = before.filter(|_| !recorded(&self.budget).contains(&name))?;
        let leave = now.left(&before)?;
        // A pod that was made to fail by hand asks nobody.
        let failed = text(&change.object, "/status/phase") == "Failed"
            && deeds.deleted.contains(&text(&change.object, "/metadata/uid"));
        let due = before.counts(change.at_ms) && guards(&self.budget, leave) && self.asks(change.at_ms);
        if due && !failed {
            return Some(format!("{leave:?} of a pod in service that is not recorded"));
        }
        self.lost_ms.push(change.at_ms);
        None
    }

    /// Whether the budget asks for pods in service, and has counted them.
    fn asks(&self, at_ms: i64) -> bool {
        let counted = self
            .budget
            .pointer("/status/desiredAvailable")
            .and_then(Value::as_i64);
        counted.is_some_and(|counted| counted > 0) || counted.is_some() && self.desired.least(at_ms) > 0
    }
}

/// The differences between the budget's status at the end and the one that follows from its pods.
pub(super) fn unlike(budget: &Value, pods: &[Value], replicas: i64) -> Vec<String> {
    let count = |pods: Vec<&Value>| i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let current = count(pods.iter().filter(|pod| is_in_service(pod)).collect());
    let desired = desired(budget, replicas);
    let expected = [
        ("totalReplicas", replicas),
        ("desiredAvailable", desired),
        ("currentAvailable", current),
        ("unavailableAllowed", (current - desired).max(0)),
    ];
    let mut wrongs = Vec::new();
    for (counter, expected) in expected {
        let found = number(budget, &format!("/status/{counter}"));
        if found != expected {
            wrongs.push(format!("at the end {counter} is {found}, not {expected}"));
        }
    }
    let left = recorded(budget);
    if !left.is_empty() {
        wrongs.push(format!("at the end {left:?} are recorded"));
    }
    let over = |pod: &&Value| text(pod, "/status/phase") == "Failed";
    let unnamed = count(pods.iter().filter(|pod| !is_named(pod) && !over(pod)).collect());
    if unnamed > 0 {
        wrongs.push(format!("at the end {unnamed} pods do not name the budget"));
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
