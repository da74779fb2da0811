//! The invariants of a history, checked after every change.

use std::collections::BTreeMap;

use shared_json::{Value, json};

use super::numbers::Numbers;
use crate::histories::deeds::Deeds;
use crate::histories::pod::{Pod, STATE};
use crate::history::{Change, ChangeKind};

/// Advanced StatefulSets, as histories name them.
pub(super) const RESOURCE: &str = "statefulsets.kruise";

/// The ordinal in a pod's name.
pub(super) fn ordinal(pod: &str) -> Option<i64> {
    pod.rsplit('-').next()?.parse().ok()
}

/// Whether a pod is held before it is deleted.
pub(super) fn is_held(pod: &Value) -> bool {
    let labels = pod.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(STATE)?.as_str()) == Some("PreparingDelete")
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut set = json!({});
    let mut pods: BTreeMap<i64, Pod> = BTreeMap::new();
    for change in history {
        match change.resource.as_str() {
            RESOURCE => set = Value::clone(&change.object),
            "pods" => {
                let name = change.name();
                let Some(ordinal) = ordinal(&name) else {
                    out.push(format!("{name} has no ordinal"));
                    continue;
                };
                let before = pods.get(&ordinal).cloned();
                if change.kind == ChangeKind::Deleted {
                    pods.remove(&ordinal);
                    continue;
                }
                let after = Pod::of(&change.object, before.as_ref(), change.at_ms);
                pods.insert(ordinal, after.clone());
                if !deeds.outrun(change.at_ms) {
                    let moment = Moment {
                        set: &set,
                        numbers: Numbers::of(&set),
                        pods: &pods,
                        deeds,
                        at_ms: change.at_ms,
                    };
                    let fault = moment.fault(ordinal, before.as_ref(), &after);
                    out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
                }
            }
            _ => {}
        }
    }
    out
}

struct Moment<'a> {
    set: &'a Value,
    numbers: Numbers,
    pods: &'a BTreeMap<i64, Pod>,
    deeds: &'a Deeds,
    at_ms: i64,
}

impl Moment<'_> {
    fn revision(&self, which: &str) -> &str {
        let found = self
            .set
            .get("status")
            .and_then(|status| status.get(which)?.as_str());
        found.unwrap_or_default()
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.numbers.min_ready_ms, self.at_ms)
    }

    /// How many of the set's ordinals have such a pod.
    fn count(&self, which: impl Fn(&Pod) -> bool) -> i64 {
        let own = self.numbers.ordinals.iter();
        let count = own
            .filter(|ordinal| self.pods.get(ordinal).is_some_and(&which))
            .count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    fn fault(&self, ordinal: i64, before: Option<&Pod>, after: &Pod) -> Option<String> {
        if after.restarts > after.images {
            return Some(format!(
                "{} restarts for {} changes of the image",
                after.restarts, after.images
            ));
        }
        match before {
            None => self.created(ordinal),
            Some(before) => self.too_few(ordinal, before, after),
        }
        .or_else(|| self.too_new(ordinal, before, after))
    }

    /// A pod came that the set does not have, or too early.
    fn created(&self, ordinal: i64) -> Option<String> {
        let own = &self.numbers.ordinals;
        if !own.contains(&ordinal) {
            return Some(format!("created, but the ordinals are {own:?}"));
        }
        let serves = |ordinal: &i64| self.pods.get(ordinal).is_some_and(|pod| self.is_available(pod));
        let waits = own.iter().find(|other| **other < ordinal && !serves(other));
        waits
            .filter(|_| self.numbers.ordered)
            .map(|other| format!("created before {other} is available"))
    }

    /// A pod was taken out of service that was needed.
    fn too_few(&self, ordinal: i64, before: &Pod, after: &Pod) -> Option<String> {
        let replicas = i64::try_from(self.numbers.ordinals.len()).unwrap_or(i64::MAX);
        let was_available = before.is_surely_available(self.numbers.min_ready_ms, self.at_ms);
        let taken = was_available && !self.is_available(after);
        let needed = self.numbers.ordinals.contains(&ordinal) && !self.deeds.deleted.contains(&after.uid);
        let left = self.count(|pod| self.is_available(pod));
        let may_miss = self.numbers.max_unavailable;
        (taken && needed && left < replicas - may_miss).then(|| {
            format!("taken away, which leaves {left} of {replicas} available, {may_miss} may be missing")
        })
    }

    /// A pod came to the new revision, or came with it, that should have stayed at the old one.
    fn too_new(&self, ordinal: i64, before: Option<&Pod>, after: &Pod) -> Option<String> {
        let update = self.revision("updateRevision");
        let changed = before.is_none_or(|before| before.revision != after.revision);
        if !changed || after.revision != update || update == self.revision("currentRevision") {
            return None;
        }
        let partition = self.numbers.partition;
        let place = self.numbers.place(ordinal)?;
        if !self.numbers.unordered_update {
            return (place < partition)
                .then(|| format!("updated in place {place}, where {partition} are to stay"));
        }
        let replicas = i64::try_from(self.numbers.ordinals.len()).unwrap_or(i64::MAX);
        let updated = self.count(|pod| pod.revision == update);
        (updated > replicas - partition)
            .then(|| format!("updated as number {updated} of {replicas}, {partition} to stay"))
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
