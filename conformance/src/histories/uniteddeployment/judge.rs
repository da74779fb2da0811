//! The invariants of a history, checked after every change.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::histories::deeds::Deeds;
use crate::histories::pod::Pod;
use crate::history::{Change, ChangeKind, number, text};

/// UnitedDeployments, as histories name them.
pub(super) const RESOURCE: &str = "uniteddeployments";
/// The label of a workload and of its pods that has the subset.
const SUBSET: &str = "/metadata/labels/apps.kruise.io~1subset-name";
/// The label of a workload and of its pods that has the revision of the UnitedDeployment.
const REVISION: &str = "/metadata/labels/apps.kruise.io~1controller-revision-hash";

/// A pod with its workload, and the revision that it was made from.
#[derive(Debug, Clone)]
struct Member {
    pod: Pod,
    workload: String,
    revision: String,
}

/// The workloads and pods at some moment.
#[derive(Default)]
struct World {
    workloads: BTreeMap<String, Value>,
    pods: BTreeMap<String, Member>,
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut world = World::default();
    for change in history {
        let name = change.name();
        let gone = change.kind == ChangeKind::Deleted;
        let fault = match change.resource.as_str() {
            "clonesets" if gone => {
                world.workloads.remove(&name);
                None
            }
            "clonesets" => {
                world.workloads.insert(name.clone(), Value::clone(&change.object));
                world.second(&name)
            }
            "pods" if gone => {
                world.pods.remove(&name);
                None
            }
            "pods" => {
                let before = world.pods.get(&name).map(|member| member.pod.clone());
                let member = Member {
                    pod: Pod::of(&change.object, before.as_ref(), change.at_ms),
                    workload: text(&change.object, "/metadata/ownerReferences/0/name"),
                    revision: text(&change.object, REVISION),
                };
                world.pods.insert(name.clone(), member.clone());
                let by_hand = deeds.deleted.contains(&member.pod.uid) || member.pod.marked;
                let taken = world.taken(before.as_ref(), &member).filter(|_| !by_hand);
                restarted(&member.pod).or(taken)
            }
            _ => None,
        };
        let fault = fault.filter(|_| !deeds.outrun(change.at_ms));
        out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
    }
    out
}

/// A pod was restarted more often than its image changed.
fn restarted(pod: &Pod) -> Option<String> {
    (pod.restarts > pod.images).then(|| {
        format!(
            "{} restarts for {} changes of the image",
            pod.restarts, pod.images
        )
    })
}

impl World {
    /// A subset has another workload that stays.
    fn second(&self, name: &str) -> Option<String> {
        let subset = text(self.workloads.get(name)?, SUBSET);
        let other = self.workloads.iter().find(|(other, workload)| {
            *other != name
                && text(workload, SUBSET) == subset
                && text(workload, "/metadata/deletionTimestamp").is_empty()
        });
        other.map(|(other, _)| format!("subset {subset} has {other}, too"))
    }

    /// A pod of its workload's revision was taken away although there are not too many of them.
    fn taken(&self, before: Option<&Pod>, after: &Member) -> Option<String> {
        if before.is_none_or(|before| before.ends) || !after.pod.ends {
            return None;
        }
        let workload = self.workloads.get(&after.workload)?;
        if text(workload, REVISION) != after.revision {
            return None;
        }
        let pods = self.pods.values();
        let there = pods.filter(|other| other.workload == after.workload && !other.pod.ends);
        let there = i64::try_from(there.count()).unwrap_or(i64::MAX);
        let wanted = number(workload, "/spec/replicas");
        (there < wanted).then(|| format!("taken away, which leaves {there} of {wanted}"))
    }
}

/// The differences between the spec and the whole at the end: the subsets add up to it.
pub(super) fn unlike(set: &Value, pods: &[Value], replicas: i64, subsets: &[&str]) -> Vec<String> {
    let mut wrongs = Vec::new();
    // A CloneSet leaves pods that have failed.
    let runs = |pod: &&Value| text(pod, "/status/phase") != "Failed";
    let pods: Vec<&Value> = pods.iter().filter(runs).collect();
    for counter in [
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
    ] {
        let found = number(set, &format!("/status/{counter}"));
        if found != replicas {
            wrongs.push(format!("at the end {counter} is {found}, not {replicas}"));
        }
    }
    let revisions = ["/status/currentRevision", "/status/updateStatus/updatedRevision"];
    let [current, update] = revisions.map(|revision| text(set, revision));
    if current != update {
        wrongs.push(format!("at the end the revision is {current}, not {update}"));
    }
    let planned = set.pointer("/status/subsetReplicas").and_then(Value::as_object);
    let planned: BTreeMap<String, i64> = planned
        .into_iter()
        .flatten()
        .map(|(subset, number)| (subset.to_string(), number.as_i64().unwrap_or(0)))
        .collect();
    let sum: i64 = planned.values().sum();
    if sum != replicas || !planned.keys().map(String::as_str).eq(subsets.iter().copied()) {
        wrongs.push(format!("at the end the subsets are {planned:?}, of {replicas}"));
    }
    for (subset, number) in planned {
        let own = pods.iter().filter(|pod| text(pod, SUBSET) == subset);
        let own = own.filter(|pod| text(pod, REVISION) == update).count();
        if i64::try_from(own) != Ok(number) {
            wrongs.push(format!("at the end {subset} has {own} new pods of {number}"));
        }
    }
    if i64::try_from(pods.len()) != Ok(replicas) {
        wrongs.push(format!("at the end there are {} pods of {replicas}", pods.len()));
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
