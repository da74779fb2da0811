//! The invariants of a history, checked after every change.
//!
//! No pod is created for a subset that has its maximum of pods that were created for it, unless it takes the place of a pod beyond the
//! maximum: when a pod goes, the webhook gives its place away whatever the maximum (OpenKruise: the same). In the end the status counts
//! the pods of each subset, and the subsets add up to the whole.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::histories::commits::{LATE_MS, Numbers, in_order, of_whole};
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::history::{Change, ChangeKind, list, number, text};

/// WorkloadSpreads, as histories name them.
pub(super) const RESOURCE: &str = "workloadspreads";
/// The annotation of a pod that has its subset.
const MATCHED: &str = "/metadata/annotations/apps.kruise.io~1matched-workloadspread";
/// The version of pods that have none of their own.
const UNVERSIONED: &str = "versionIgnored";

/// A pod with its subset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pod {
    subset: String,
    version: String,
    active: bool,
    /// Whether its subset has it beyond the maximum: it was created without a subset, and the controller gives such a pod one whatever the
    /// maximum, or it has the place of such a pod.
    adopted: bool,
}

impl Pod {
    fn of(object: &Value) -> Self {
        let matched: Value = shared_json::from_str(&text(object, MATCHED)).unwrap_or_default();
        let hash = text(object, "/metadata/labels/pod-template-hash");
        let owner = text(object, "/metadata/ownerReferences/0/kind");
        Self {
            subset: text(&matched, "/subset"),
            version: if owner == "ReplicaSet" {
                hash
            } else {
                UNVERSIONED.to_owned()
            },
            active: text(object, "/metadata/deletionTimestamp").is_empty()
                && !matches!(text(object, "/status/phase").as_str(), "Succeeded" | "Failed"),
            adopted: false,
        }
    }

    /// Its subset and its version.
    fn place(&self) -> (String, String) {
        (self.subset.clone(), self.version.clone())
    }
}

/// The state at some moment.
#[derive(Default)]
struct World {
    spread: Value,
    replicas: i64,
    pods: BTreeMap<String, Pod>,
    /// The maximum of each subset that has one.
    maxima: BTreeMap<String, Numbers>,
    /// When a subset lost pods beyond its maximum, by version: the place of each is given to a new one.
    given_ms: BTreeMap<(String, String), Vec<i64>>,
}

/// The numbers of replicas that were asked for, and when.
fn scales(deeds: &Deeds, first: i64) -> Vec<(i64, i64)> {
    let patches = deeds.errands.iter().filter_map(|(at_ms, errand)| match errand {
        Errand::Patch(object) => Some((*at_ms, object.pointer("/spec/replicas")?.as_i64()?)),
        _ => None,
    });
    std::iter::once((i64::MIN, first)).chain(patches).collect()
}

/// The violations in a history of a workload that had so many replicas at first; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds, first: i64) -> Vec<String> {
    let scales = scales(deeds, first);
    let mut world = World::default();
    let mut out = Vec::new();
    for change in in_order(history) {
        let name = change.name();
        let scale = scales.iter().rfind(|(at_ms, _)| *at_ms <= change.at_ms);
        world.replicas = scale.map_or(first, |(_, replicas)| *replicas);
        world.measure(change.at_ms);
        let fault = match change.resource.as_str() {
            RESOURCE => {
                world.spread = Value::clone(&change.object);
                None
            }
            "pods" if change.kind == ChangeKind::Deleted => {
                world.leaves(&name, change.at_ms);
                world.pods.remove(&name);
                None
            }
            "pods" => {
                let mut pod = Pod::of(&change.object);
                let before = world.pods.get(&name);
                let is_new = before.is_none();
                pod.adopted = before.is_some_and(|before| before.adopted || before.subset.is_empty());
                if !pod.active {
                    world.leaves(&name, change.at_ms);
                }
                world.pods.insert(name.clone(), pod.clone());
                if is_new {
                    world.created(&name, &pod, change.at_ms)
                } else {
                    None
                }
            }
            _ => continue,
        };
        world.measure(change.at_ms);
        out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
    }
    out
}

impl World {
    /// Writes down the maxima.
    fn measure(&mut self, at_ms: i64) {
        for subset in list(&self.spread, "/spec/subsets") {
            let maximum = subset.get("maxReplicas").filter(|maximum| !maximum.is_null());
            let most = maximum.map_or(i64::MAX, |maximum| of_whole(maximum, self.replicas));
            self.maxima
                .entry(text(subset, "/name"))
                .or_default()
                .set(at_ms, most);
        }
    }

    /// The pods that stay in the subset of `pod`: they are neither over nor being deleted.
    fn staying(&self, pod: &Pod) -> i64 {
        let version = self.spread.pointer("/status/versionedSubsetStatuses");
        let version = version.and_then(|versions| versions.get(pod.version.as_str())?.as_array());
        let status = version
            .into_iter()
            .flatten()
            .find(|status| text(status, "/name") == pod.subset);
        let deleting = status.and_then(|status| status.get("deletingPods")?.as_object());
        let goes = |name: &str| deleting.is_some_and(|deleting| deleting.contains_key(name));
        let own = self.pods.iter().filter(|(name, other)| {
            let counts = other.active && !other.adopted && !goes(name);
            counts && other.subset == pod.subset && other.version == pod.version
        });
        i64::try_from(own.count()).unwrap_or(i64::MAX)
    }

    /// A pod is over, going or gone.
    fn leaves(&mut self, name: &str, at_ms: i64) {
        let Some(pod) = self.pods.get(name).filter(|pod| pod.active) else {
            return;
        };
        let own = self.pods.values().filter(|other| {
            let counts = other.active && !other.adopted;
            counts && other.subset == pod.subset && other.version == pod.version
        });
        let own = i64::try_from(own.count()).unwrap_or(i64::MAX);
        let maximum = self.maxima.get(&pod.subset);
        if pod.adopted || maximum.is_some_and(|maximum| own > maximum.least(at_ms)) {
            let places = self.given_ms.entry(pod.place()).or_default();
            places.push(at_ms);
        }
    }

    /// A pod was created as the first one beyond the maximum of its subset. A subset that has more already was made smaller. A pod that
    /// takes the place of one beyond the maximum is beyond it, too.
    fn created(&mut self, name: &str, pod: &Pod, at_ms: i64) -> Option<String> {
        let most = self.maxima.get(&pod.subset)?.most(at_ms);
        let count = self.staying(pod);
        if count <= most {
            return None;
        }
        let places = self.given_ms.entry(pod.place()).or_default();
        places.retain(|given_ms| at_ms - given_ms < LATE_MS);
        if !places.is_empty() {
            places.remove(0);
            self.pods.get_mut(name)?.adopted = true;
            return None;
        }
        (count == most + 1).then(|| {
            format!(
                "created as pod {count} of subset {}, which takes {most}",
                pod.subset
            )
        })
    }
}

/// The expected result of the spread and its workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// How many pods there are to be.
    pub(super) replicas: i64,
    /// Whether each pod has a subset.
    pub(super) all_placed: bool,
    /// Whether no subset has more than its maximum.
    pub(super) within_maxima: bool,
}

/// The differences between the status at the end and the pods.
pub(super) fn unlike(spread: &Value, pods: &[Value], whole: &Whole) -> Vec<String> {
    let pods: Vec<Pod> = pods.iter().map(Pod::of).filter(|pod| pod.active).collect();
    let mut wrongs = Vec::new();
    let mut sum = 0;
    for status in list(spread, "/status/subsetStatuses") {
        let (name, found) = (text(status, "/name"), number(status, "/replicas"));
        let own = pods.iter().filter(|pod| pod.subset == name).count();
        if i64::try_from(own) != Ok(found) {
            wrongs.push(format!(
                "at the end {name} has {own} pods, and {found} by the status"
            ));
        }
        let subset = list(spread, "/spec/subsets")
            .iter()
            .find(|subset| text(subset, "/name") == name);
        let maximum = subset.and_then(|subset| subset.get("maxReplicas"));
        let most = maximum.map_or(i64::MAX, |maximum| of_whole(maximum, whole.replicas));
        if whole.within_maxima && found > most {
            wrongs.push(format!("at the end {name} has {found} pods of {most}"));
        }
        let missing = if most == i64::MAX {
            -1
        } else {
            (most - found).max(0)
        };
        let said = number(status, "/missingReplicas");
        if said != missing && whole.replicas > 0 {
            wrongs.push(format!("at the end {name} misses {said} pods, not {missing}"));
        }
        sum += found;
    }
    let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    if whole.all_placed && sum != there || sum > there {
        wrongs.push(format!("at the end the subsets have {sum} pods of {there}"));
    }
    let versions = spread
        .pointer("/status/versionedSubsetStatuses")
        .and_then(Value::as_object);
    let lists = versions
        .into_iter()
        .flatten()
        .filter_map(|(_, list)| list.as_array());
    let waits = |status: &Value| {
        ["creatingPods", "deletingPods"]
            .iter()
            .any(|map| status.get(*map).is_some())
    };
    if lists.flatten().any(waits) {
        wrongs.push("at the end pods are waited for".to_owned());
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
