//! The pod of a run that a step means, when the recording's step names one of its own pods.
//!
//! The pods of one burst are alike but for their random names, and which of them OpenKruise takes first is decided by the
//! order of a Go map. A recording's step that follows, such as "take the finalizer off `sample-4kcrq`", means *the pod that
//! is being held*, not a name. So the run's pod is the one of the same burst that is in the same state at that moment:
//! same labels, finalizers, restarts and phase, and mentioned as early by the workload's events. Once cast, a pod keeps its
//! role to the end, and the comparison calls it by the recording's name.

use std::collections::BTreeMap;

use shared_json::{Value, json};

use super::load::Recording;
use super::pairing::{Mentions, bursts, replace};
use crate::history::{Change, State, cut, text};

/// Labels that differ between pods that are alike, or between versions.
const IGNORED_LABELS: [&str; 3] = [
    "apps.kruise.io/cloneset-instance-id",
    "pod-template-hash",
    "controller.kubernetes.io/hash",
];

/// The pods of a run that have a role in the recording's steps.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// The run's pod by the recording's name.
    ours: BTreeMap<String, String>,
}

/// The pods at a moment of a history.
struct Moment {
    state: State,
    ranks: BTreeMap<String, usize>,
}

impl Moment {
    fn of(history: &[Change], burst: &[String]) -> Self {
        let mentions = Mentions::of(history);
        let is_mentioned = |name: &&String| !mentions.of_pod(name).is_empty();
        let mut order: Vec<&String> = burst.iter().filter(is_mentioned).collect();
        order.sort_by_key(|name| (mentions.of_pod(name), (*name).clone()));
        Self {
            state: State::after(history),
            ranks: order
                .into_iter()
                .enumerate()
                .map(|(at, name)| (name.clone(), at))
                .collect(),
        }
    }

    fn rank(&self, name: &str) -> usize {
        self.ranks.get(name).copied().unwrap_or(usize::MAX)
    }

    /// The distinguishing properties of a pod; none if it does not exist.
    fn looks(&self, name: &str) -> Option<Value> {
        let pod = self
            .state
            .of("pods")
            .find(|pod| text(pod, "/metadata/name") == name)?;
        let mut labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
        if let Some(labels) = labels.as_object_mut() {
            labels.retain(|key, _| !IGNORED_LABELS.contains(&key.as_str()));
        }
        let restarts: Vec<&Value> = pod
            .pointer("/status/containerStatuses")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|status| status.get("restartCount"))
            .collect();
        Some(json!({
            "labels": labels,
            "finalizers": pod.pointer("/metadata/finalizers"),
            "ends": pod.pointer("/metadata/deletionTimestamp").is_some(),
            "restarts": restarts,
            "phase": pod.pointer("/status/phase"),
        }))
    }
}

impl Roles {
    /// The pods of the recording that a text names each play themselves.
    #[must_use]
    pub fn named_in(recording: &Recording, text: &str) -> Self {
        let pods = bursts(&recording.history).into_iter().flatten();
        let named = pods.filter(|name| text.contains(name.as_str()));
        Self {
            ours: named.map(|name| (name.clone(), name)).collect(),
        }
    }

    /// The run's names for those of the recording, as far as they are cast.
    #[must_use]
    pub fn ours(&self) -> &BTreeMap<String, String> {
        &self.ours
    }

    /// Casts the pods that `value`, part of the recording's step that begins at `at_ms`, speaks of; gives it with the
    /// run's names.
    #[must_use]
    pub fn translate(&mut self, recording: &Recording, at_ms: i64, run: &[Change], value: &Value) -> Value {
        let told = value.to_string();
        let before = &recording.history[..cut(&recording.history, at_ms)];
        for burst in bursts(before) {
            for name in burst.iter().filter(|name| told.contains(name.as_str())) {
                self.cast(before, run, &burst, name);
            }
        }
        let mut value = value.clone();
        replace(&mut value, &self.ours);
        value
    }

    fn cast(&mut self, recorded: &[Change], run: &[Change], burst: &[String], name: &str) {
        if self.ours.contains_key(name) {
            return;
        }
        let (theirs, now) = (Moment::of(recorded, burst), Moment::of(run, burst));
        let looks = theirs.looks(name);
        let taken = |candidate: &String| self.ours.values().any(|ours| ours == candidate);
        let best = burst
            .iter()
            .filter(|candidate| !taken(candidate) && now.looks(candidate).is_some())
            .min_by_key(|candidate| {
                (
                    now.looks(candidate) != looks,
                    now.rank(candidate).abs_diff(theirs.rank(name)),
                    candidate.as_str() != name,
                    (*candidate).clone(),
                )
            });
        if let Some(best) = best {
            self.ours.insert(name.to_owned(), best.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::ChangeKind;

    fn pod(at_ms: i64, kind: ChangeKind, name: &str, state: &str) -> Change {
        let object = json!({"metadata": {"name": name, "labels": {"state": state}}});
        Change {
            at_ms,
            resource: "pods".to_owned(),
            kind,
            object: Arc::new(object),
        }
    }

    fn history(held: &str) -> Vec<Change> {
        vec![
            pod(0, ChangeKind::Added, "a-1", "Normal"),
            pod(1, ChangeKind::Added, "a-2", "Normal"),
            pod(900, ChangeKind::Modified, held, "PreparingDelete"),
        ]
    }

    #[test]
    fn the_pod_that_is_held_is_meant() {
        let recording = Recording {
            name: "r".to_owned(),
            folder: std::path::PathBuf::new(),
            steps: Vec::new(),
            history: history("a-1"),
            began: None,
            namespace: "default".to_owned(),
            gates: String::new(),
        };
        let mut roles = Roles::default();
        let names = json!(["a-1"]);
        assert_eq!(
            roles.translate(&recording, 1000, &history("a-2"), &names),
            json!(["a-2"])
        );
        // It keeps its role, and the other one has to take the other's.
        let both = json!(["a-1", "a-2", "b-1"]);
        let expected = json!(["a-2", "a-1", "b-1"]);
        assert_eq!(
            roles.translate(&recording, 1000, &history("a-1"), &both),
            expected
        );
    }
}
