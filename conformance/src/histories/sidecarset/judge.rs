//! The invariants of a history, checked after every change.

use std::collections::BTreeMap;

use shared_json::{Value, json};

use super::pod::{MAIN, Pod};
use crate::histories::deeds::Deeds;
use crate::history::{Change, ChangeKind, number, text};

/// SidecarSets, as histories name them.
pub(super) const RESOURCE: &str = "sidecarsets";

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut set = json!({});
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for change in history {
        let name = change.name();
        match change.resource.as_str() {
            RESOURCE => set = Value::clone(&change.object),
            "pods" if change.kind == ChangeKind::Deleted => drop(pods.remove(&name)),
            "pods" => {
                let before = pods.get(&name).cloned();
                let after = Pod::of(&change.object, before.as_ref());
                pods.insert(name.clone(), after.clone());
                let mut faults = restarts(&after);
                if let Some(before) = before.filter(|before| before.images() != after.images())
                    && !deeds.outrun(change.at_ms)
                {
                    pods.remove(&name);
                    faults.extend(Rules::of(&set).upgrade(&pods, &before));
                    pods.insert(name.clone(), after);
                }
                out.extend(
                    faults
                        .into_iter()
                        .map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)),
                );
            }
            _ => {}
        }
    }
    out
}

/// The restarts of a pod that nothing asked for.
fn restarts(pod: &Pod) -> Vec<String> {
    let containers = pod.containers.iter();
    let excess = containers.filter(|(_, container)| container.restarts > container.images);
    excess
        .map(|(name, container)| {
            let (restarts, images) = (container.restarts, container.images);
            format!("{name} restarted {restarts} times for {images} changes of its image")
        })
        .collect()
}

impl Pod {
    fn images(&self) -> Vec<(&String, &String)> {
        let sidecars = self.containers.iter().filter(|(name, _)| *name != MAIN);
        sidecars
            .map(|(name, container)| (name, &container.image))
            .collect()
    }
}

/// The rules of a set's updates, computed here once more: the judge shares no code with the controller.
struct Rules<'a> {
    set: &'a Value,
    /// The wanted images, by the sidecar's name.
    images: BTreeMap<String, String>,
}

impl<'a> Rules<'a> {
    fn of(set: &'a Value) -> Self {
        let containers = set.pointer("/spec/containers").and_then(Value::as_array);
        let images = containers.into_iter().flatten();
        let images = images.map(|container| (text(container, "/name"), text(container, "/image")));
        Self {
            set,
            images: images.collect(),
        }
    }

    /// A number of `pods`, or a share of them, rounded up.
    fn count(&self, field: &str, pods: i64) -> Option<i64> {
        match self.set.pointer(&format!("/spec/updateStrategy/{field}"))? {
            Value::String(share) => {
                let share: i64 = share.trim_end_matches('%').parse().ok()?;
                Some((share * pods + 99) / 100)
            }
            value => value.as_i64(),
        }
    }

    /// How many of `pods` keep their sidecars: with a share below 100 % at least one pod is updated.
    fn partition(&self, pods: i64) -> i64 {
        let keep = self.count("partition", pods).unwrap_or(0).clamp(0, pods);
        let all = text(self.set, "/spec/updateStrategy/partition") == "100%";
        let is_share = self
            .set
            .pointer("/spec/updateStrategy/partition")
            .is_some_and(Value::is_string);
        if is_share && !all && pods > 1 && keep == pods {
            return pods - 1;
        }
        keep
    }

    /// Whether the pods of this set are updated in pairs of containers.
    fn is_hot(&self) -> bool {
        let kind = text(self.set, "/spec/containers/0/upgradeStrategy/upgradeType");
        kind == "HotUpgrade"
    }

    /// The faults of a change of the sidecars of a pod, which was so before; `others` are the other pods.
    fn upgrade(&self, others: &BTreeMap<String, Pod>, before: &Pod) -> Option<String> {
        if self.set.pointer("/spec/updateStrategy/paused") == Some(&Value::from(true)) {
            return Some("sidecars changed while the set is paused".to_owned());
        }
        // Pods with pairs of containers are changed twice, and the second time nothing counts.
        if self.is_hot() {
            return None;
        }
        let others: Vec<&Pod> = others.values().filter(|pod| !pod.ends).collect();
        let count = |pods: Vec<&&Pod>| i64::try_from(pods.len()).unwrap_or(i64::MAX);
        let all = 1 + count(others.iter().collect());
        let old = 1 + count(others.iter().filter(|pod| !pod.has(&self.images)).collect());
        let keep = self.partition(all);
        if old <= keep {
            return Some(format!(
                "updated as one of {old} old ones of {all}, {keep} are to stay"
            ));
        }
        let busy = others
            .iter()
            .filter(|pod| pod.upgraded && pod.has(&self.images) && !pod.serves());
        let (busy, most) = (
            count(busy.collect()),
            self.count("maxUnavailable", all).unwrap_or(1),
        );
        (before.serves() && busy >= most)
            .then(|| format!("updated while {busy} of {all} are being updated, {most} may be"))
    }
}

/// The differences between the spec and the set with its pods at the end.
pub(super) fn unlike(set: &Value, pods: &[Value], desired: i64) -> Vec<String> {
    let mut wrongs = Vec::new();
    for counter in ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"] {
        let found = number(set, &format!("/status/{counter}"));
        if found != desired {
            wrongs.push(format!("at the end {counter} is {found}, not {desired}"));
        }
    }
    let rules = Rules::of(set);
    let pods = pods.iter().map(|pod| Pod::of(pod, None)).filter(|pod| !pod.ends);
    let old = pods
        .filter(|pod| !rules.is_hot() && !pod.has(&rules.images))
        .count();
    if old > 0 {
        wrongs.push(format!("at the end {old} pods have other sidecars"));
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
