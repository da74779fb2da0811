//! Pairing of the pods of a run with the pods of a recording.
//!
//! The pods that a workload creates in one burst are alike but for their random names: OpenKruise creates them in
//! parallel, and which of them comes first in a later update is decided by the order of a Go map. So a run is compared with
//! a recording up to a renaming *within each burst*: the pods of a burst are paired in the order in which the workload's
//! events mention them later, or in which their sidecars are changed, of which there are no events. Pods that a step of the
//! recording names keep the role that was cast then ([`Roles`]), and one burst is never mixed with another, so that a wrong pod
//! deleted or a wrong order between old and new pods still shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shared_json::Value;

use super::load::Recording;
use super::revisions;
use super::roles::Roles;
use crate::history::{Change, ChangeKind, text};

/// Pods whose creations are closer than this belong to one burst.
const BURST_MS: i64 = 500;

/// The label of a pod that has its name from an ordinal.
const ORDINAL_NAME: &str = "/metadata/labels/statefulset.kubernetes.io~1pod-name";

/// The controller of a pod: pods of two workloads are never alike.
const OWNER: &str = "/metadata/ownerReferences/0/name";

/// The pods of a history in the order of their creation, in bursts of one workload each. Pods with names from ordinals keep their
/// identity.
pub(super) fn bursts(history: &[Change]) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = Vec::new();
    // The last burst of each workload, and its last moment.
    let mut last: BTreeMap<String, (usize, i64)> = BTreeMap::new();
    for change in history {
        let is_pod = change.resource == "pods" && change.object.pointer(ORDINAL_NAME).is_none();
        if !is_pod || change.kind != ChangeKind::Added {
            continue;
        }
        let owner = text(&change.object, OWNER);
        let joined = last
            .get(&owner)
            .filter(|(_, at_ms)| change.at_ms - at_ms <= BURST_MS);
        let at = joined.map_or(out.len(), |(at, _)| *at);
        match out.get_mut(at) {
            Some(burst) => burst.push(change.name()),
            None => out.push(vec![change.name()]),
        }
        last.insert(owner, (at, change.at_ms));
    }
    out
}

/// The annotation of a pod that changes whenever its sidecars do.
const SIDECARS_CHANGED: &str = "/metadata/annotations/kruise.io~1sidecarset-inplace-update-state";

/// For each pod, when the events of other objects mention it after its creation, and when its sidecars are changed: the positions
/// among all such changes of a history.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    positions: BTreeMap<String, Vec<usize>>,
    sidecars: BTreeMap<String, String>,
    count: usize,
}

impl Mentions {
    /// The mentions of a history.
    pub(super) fn of(history: &[Change]) -> Self {
        let mut mentions = Self::default();
        history.iter().for_each(|change| mentions.note(change));
        mentions
    }

    /// Goes on with the next change of the history.
    pub(super) fn note(&mut self, change: &Change) {
        if change.kind == ChangeKind::Deleted {
            return;
        }
        let is_event = change.resource == "events"
            && text(&change.object, "/involvedObject/kind") != "Pod"
            && text(&change.object, "/reason") != "SuccessfulCreate";
        if is_event {
            for word in text(&change.object, "/message").split([' ', '(', ')', ',']) {
                if word.contains('-') {
                    self.positions
                        .entry(word.to_owned())
                        .or_default()
                        .push(self.count);
                }
            }
            self.count += 1;
        } else if change.resource == "pods" {
            let state = text(&change.object, SIDECARS_CHANGED);
            let before = self.sidecars.insert(change.name(), state.clone());
            if before.unwrap_or_default() != state {
                self.positions.entry(change.name()).or_default().push(self.count);
                self.count += 1;
            }
        }
    }

    /// The positions of the mentions of each pod.
    pub(super) fn into_positions(self) -> BTreeMap<String, Vec<usize>> {
        self.positions
    }

    /// The positions at which a pod is mentioned, in order.
    pub(super) fn of_pod(&self, name: &str) -> &[usize] {
        self.positions.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The recording's names of a run's pods and revisions, where they differ from the run's.
#[must_use]
pub fn pair(recording: &Recording, run: &[Change], roles: &Roles) -> BTreeMap<String, String> {
    let mut out = pair_pods(recording, run, roles);
    out.extend(revisions::pair(&recording.name, &recording.history, run));
    out
}

/// The recording's names of a run's pods, where they differ from the run's.
#[must_use]
pub fn pair_pods(recording: &Recording, run: &[Change], roles: &Roles) -> BTreeMap<String, String> {
    let cast = roles.ours();
    let playing: BTreeSet<&String> = cast.values().collect();
    let (recorded_mentions, run_mentions) = (Mentions::of(&recording.history), Mentions::of(run));
    let order = |mentions: &Mentions, name: &String| {
        // Those that are never mentioned again come last, whichever they are.
        let positions = match mentions.of_pod(name) {
            [] => vec![usize::MAX],
            positions => positions.to_vec(),
        };
        (positions, name.clone())
    };
    let run_pods: BTreeSet<String> = bursts(run).into_iter().flatten().collect();
    let mut out: BTreeMap<String, String> = cast
        .iter()
        .filter(|(theirs, ours)| theirs != ours)
        .map(|(theirs, ours)| (ours.clone(), theirs.clone()))
        .collect();
    for burst in bursts(&recording.history) {
        // The run was given the recording's names, so that its burst has the same ones.
        let there: Vec<String> = burst.into_iter().filter(|name| run_pods.contains(name)).collect();
        let mut theirs = there.clone();
        let mut ours = there;
        theirs.retain(|name| !cast.contains_key(name));
        ours.retain(|name| !playing.contains(name));
        theirs.sort_by_key(|name| order(&recorded_mentions, name));
        ours.sort_by_key(|name| order(&run_mentions, name));
        out.extend(
            ours.into_iter()
                .zip(theirs)
                .filter(|(ours, theirs)| ours != theirs),
        );
    }
    out
}

/// Gives the pods of a history other names, wherever they stand.
#[must_use]
pub fn rename(history: &[Change], names: &BTreeMap<String, String>) -> Vec<Change> {
    if names.is_empty() {
        return history.to_vec();
    }
    let renamed = |change: &Change| {
        let mut change = change.clone();
        replace(Arc::make_mut(&mut change.object), names);
        change
    };
    history.iter().map(renamed).collect()
}

pub(super) fn replace(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) if names.keys().any(|from| text.contains(from.as_str())) => {
            // By way of marks, so that two names can be exchanged.
            for (index, from) in names.keys().enumerate() {
                *text = text.replace(from.as_str(), &format!("\u{1}{index}\u{2}"));
            }
            for (index, to) in names.values().enumerate() {
                *text = text.replace(&format!("\u{1}{index}\u{2}"), to);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    fn pod(at_ms: i64, name: &str) -> Change {
        let object = json!({"metadata": {"name": name}});
        Change {
            at_ms,
            resource: "pods".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(object),
        }
    }

    fn event(at_ms: i64, message: &str) -> Change {
        let object = json!({"metadata": {"name": message}, "involvedObject": {"kind": "CloneSet"}, "reason": "X", "message": message});
        Change {
            at_ms,
            resource: "events".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(object),
        }
    }

    fn recording(history: Vec<Change>) -> Recording {
        Recording {
            name: "r".to_owned(),
            folder: std::path::PathBuf::new(),
            steps: Vec::new(),
            history,
            began: None,
            namespace: "default".to_owned(),
            gates: String::new(),
        }
    }

    #[test]
    fn pods_with_ordinals_are_who_they_are() {
        let of_set = |name: &str| {
            let object =
                json!({"metadata": {"name": name, "labels": {"statefulset.kubernetes.io/pod-name": name}}});
            Change {
                object: Arc::new(object),
                ..pod(0, name)
            }
        };
        let recorded = recording(vec![of_set("a-0"), of_set("a-1"), event(9, "delete a-0")]);
        let run = [of_set("a-0"), of_set("a-1"), event(9, "delete a-1")];
        assert_eq!(pair(&recorded, &run, &Roles::default()), BTreeMap::new());
    }

    /// Pods as `name@ms`, or `name/owner@ms`, and the bursts.
    #[rstest::rstest]
    #[case("a@0 b@500 c@1001", "a b, c")]
    #[case("a/x@0 b/y@10 c/x@20", "a c, b")]
    #[case("a/x@0 b/y@400 c/x@600", "a, b, c")]
    fn bursts_are_of_one_workload(#[case] pods: &str, #[case] expected: &str) {
        let change = |word: &str| {
            let (name, at_ms) = word.split_once('@').unwrap();
            let (name, owner) = name.split_once('/').unwrap_or((name, ""));
            let object = json!({"metadata": {"name": name, "ownerReferences": [{"name": owner}]}});
            Change {
                object: Arc::new(object),
                ..pod(at_ms.parse().unwrap(), name)
            }
        };
        let history: Vec<Change> = pods.split(' ').map(change).collect();
        let found: Vec<String> = bursts(&history).iter().map(|burst| burst.join(" ")).collect();
        assert_eq!(found.join(", "), expected);
    }

    #[test]
    fn pairs_within_a_burst_only() {
        let recorded = recording(vec![
            pod(0, "a-1"),
            pod(1, "a-2"),
            pod(9_000, "a-3"),
            event(9_900, "update a-3"),
            event(9_950, "update a-1"),
        ]);
        let same = [
            pod(0, "a-1"),
            pod(1, "a-2"),
            pod(9_000, "a-3"),
            event(9_900, "update a-3"),
            event(9_950, "update a-2"),
        ];
        let pairs = pair(&recorded, &same, &Roles::default());
        assert_eq!(pairs.get("a-2").map(String::as_str), Some("a-1"));
        assert_eq!(pairs.get("a-3"), None);
        let renamed = rename(&same, &pairs);
        assert_eq!(text(&renamed[4].object, "/message"), "update a-1");
        assert_eq!(renamed[0].name(), "a-2");
        // A wrong order between bursts is not paired away.
        let wrong = [
            pod(0, "a-1"),
            pod(1, "a-2"),
            pod(9_000, "a-3"),
            event(9_900, "update a-1"),
            event(9_950, "update a-3"),
        ];
        let renamed = rename(&wrong, &pair(&recorded, &wrong, &Roles::default()));
        assert_eq!(text(&renamed[3].object, "/message"), "update a-1");
    }
}
