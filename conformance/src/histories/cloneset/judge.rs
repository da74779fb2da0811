//! The invariants of a history, checked after every change.

use std::collections::BTreeMap;

use shared_json::{Value, json};

use super::numbers::Numbers;
use crate::histories::deeds::{BEHIND_MS, Deeds};
use crate::histories::pod::Pod;
use crate::history::{Change, ChangeKind};

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut set = json!({});
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for change in history {
        let name = change.name();
        match change.resource.as_str() {
            "clonesets" => set = Value::clone(&change.object),
            "pods" => {
                let before = pods.get(&name).cloned();
                let after = (change.kind != ChangeKind::Deleted)
                    .then(|| Pod::of(&change.object, before.as_ref(), change.at_ms));
                match &after {
                    Some(after) => pods.insert(name.clone(), after.clone()),
                    None => pods.remove(&name),
                };
                if let (Some(after), false) = (&after, deeds.outrun(change.at_ms)) {
                    let moment = Moment {
                        set: &set,
                        numbers: Numbers::of(&set),
                        pods: &pods,
                        deeds,
                        at_ms: change.at_ms,
                    };
                    let fault = moment.fault(before.as_ref(), after);
                    out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
                }
            }
            _ => {}
        }
    }
    out.extend(
        deeds
            .named
            .iter()
            .filter_map(|(at_ms, name)| overtaken(history, deeds, *at_ms, name)),
    );
    // A later list replaces the one with its name; another pod may have taken the name since, with the claims.
    if let Some((at_ms, name)) = deeds.named.last()
        && pods.get(name).is_some_and(|pod| !pod.ends && !pod.held)
        && !went(history, *at_ms, name)
    {
        out.push(format!("{name} was to be deleted, and is there"));
    }
    out
}

/// Whether the pod that had the name at that time is gone.
fn went(history: &[Change], named_ms: i64, name: &str) -> bool {
    history.iter().any(|change| {
        change.resource == "pods"
            && change.kind == ChangeKind::Deleted
            && change.at_ms >= named_ms
            && change.name() == name
    })
}

/// Whether a pod went for no reason of its own while one waited that was named to go: `name`, at `named_ms`.
fn overtaken(history: &[Change], deeds: &Deeds, named_ms: i64, name: &str) -> Option<String> {
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for change in history.iter().filter(|change| change.resource == "pods") {
        let other = change.name();
        let before = pods.get(&other).cloned();
        let after = Pod::of(&change.object, before.as_ref(), change.at_ms);
        let goes = |pod: &Pod| pod.ends || pod.held;
        let late = change.at_ms > named_ms + BEHIND_MS && !deeds.outrun(change.at_ms);
        let named_waits = pods.get(name).is_some_and(|pod| !goes(pod));
        let begins = before.as_ref().is_some_and(|before| !goes(before)) && goes(&after);
        let reason = after.marked
            || deeds.deleted.contains(&after.uid)
            || deeds.named.iter().any(|(_, named)| *named == other);
        let replaced = deeds
            .named
            .iter()
            .any(|(at, _)| (named_ms + 1..=change.at_ms).contains(at));
        if late && (!named_waits || replaced) {
            return None;
        }
        if late && begins && !reason {
            return Some(format!(
                "at {} ms, {other} goes before {name}, which was named",
                change.at_ms
            ));
        }
        if change.kind == ChangeKind::Deleted {
            pods.remove(&other);
        } else {
            pods.insert(other, after);
        }
    }
    None
}

struct Moment<'a> {
    set: &'a Value,
    numbers: Numbers,
    pods: &'a BTreeMap<String, Pod>,
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

    fn count(&self, which: impl Fn(&Pod) -> bool) -> i64 {
        let count = self.pods.values().filter(|pod| !pod.ends && which(pod)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    fn fault(&self, before: Option<&Pod>, after: &Pod) -> Option<String> {
        if after.restarts > after.images {
            return Some(format!(
                "{} restarts for {} changes of the image",
                after.restarts, after.images
            ));
        }
        self.too_many(before)
            .or_else(|| self.too_few(before?, after))
            .or_else(|| self.too_new(before, after))
    }

    /// A pod came that is one too many.
    fn too_many(&self, before: Option<&Pod>) -> Option<String> {
        let Numbers {
            replicas, max_surge, ..
        } = self.numbers;
        let all = self.count(|_| true);
        let too_many = before.is_none() && all > replicas + max_surge;
        too_many.then(|| format!("created as number {all} of {replicas} and {max_surge}"))
    }

    /// A pod was taken out of service that was needed.
    fn too_few(&self, before: &Pod, after: &Pod) -> Option<String> {
        let Numbers {
            replicas,
            max_unavailable,
            min_ready_ms,
            ..
        } = self.numbers;
        let available = |pod: &Pod| pod.is_available(min_ready_ms, self.at_ms);
        let taken = available(before) && !available(after) && !self.deeds.deleted.contains(&after.uid);
        let left = self.count(available);
        (taken && left < replicas - max_unavailable).then(|| {
            format!(
                "taken away, which leaves {left} of {replicas} available, {max_unavailable} may be missing"
            )
        })
    }

    /// A pod came to the new revision, or came with it, that should have stayed at the old one.
    fn too_new(&self, before: Option<&Pod>, after: &Pod) -> Option<String> {
        let Numbers {
            replicas, partition, ..
        } = self.numbers;
        let update = self.revision("updateRevision");
        let changed = before.is_none_or(|before| before.revision != after.revision);
        let updated = self.count(|pod| pod.revision == update && !pod.held && !pod.marked);
        let too_new = changed
            && after.revision == update
            && update != self.revision("currentRevision")
            && updated > replicas - partition;
        too_new.then(|| format!("updated as number {updated} of {replicas}, {partition} to stay"))
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
