//! The number of an owner's pods in each state, updated as pods change: a controller that needs only numbers looks at no pods.

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::pods::{is_active, is_over, is_ready};
use super::{controller_of, text};

/// Numbers of pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub active: usize,
    /// Of the active ones.
    pub ready: usize,
    /// Those that go and have not ended.
    pub terminating: usize,
}

/// Pods that have the same labels.
#[derive(Debug)]
pub(crate) struct Alike {
    /// An object with these labels.
    pub labelled: Value,
    pub numbers: Numbers,
    /// All of them, also those that have ended.
    count: usize,
}

/// Whose pods are counted together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// Of the controller with this uid.
    Owned(String),
    /// Those without a controller, in this namespace.
    Orphans(String),
}

/// The pods of each controller, and those without one, by their labels.
#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<Whose, BTreeMap<String, Alike>>);

impl Numbers {
    pub(crate) fn of(pod: &Value) -> Self {
        let active = is_active(pod);
        Self {
            active: usize::from(active),
            ready: usize::from(active && is_ready(pod)),
            terminating: usize::from(pod.is_terminating() && !is_over(pod)),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.active += other.active;
        self.ready += other.ready;
        self.terminating += other.terminating;
    }

    fn subtract(&mut self, other: Self) {
        self.active = self.active.saturating_sub(other.active);
        self.ready = self.ready.saturating_sub(other.ready);
        self.terminating = self.terminating.saturating_sub(other.terminating);
    }
}

impl Whose {
    /// By the uid alone, as the controllers look at it, whatever kind the reference names.
    fn of(pod: &Value) -> Self {
        match controller_of(pod) {
            None => Self::Orphans(pod.namespace().to_owned()),
            Some(owner) => Self::Owned(text(owner, "uid").to_owned()),
        }
    }
}

/// The labels as a text that differs where they do.
fn labels(pod: &Value) -> String {
    shared_json::to_string(string_map(pod, "labels")).unwrap_or_default()
}

impl Tallies {
    /// A pod was there before, or is there now.
    pub(super) fn change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if let (Some(old), Some(new)) = (old, new)
            && Numbers::of(old) == Numbers::of(new)
            && string_map(old, "labels") == string_map(new, "labels")
            && controller_of(old) == controller_of(new)
        {
            return;
        }
        if let Some((old, whose)) = old.map(|old| (old, Whose::of(old)))
            && let Some(all) = self.0.get_mut(&whose)
        {
            let labels = labels(old);
            if let Some(alike) = all.get_mut(&labels) {
                alike.numbers.subtract(Numbers::of(old));
                alike.count = alike.count.saturating_sub(1);
                if alike.count == 0 {
                    all.remove(&labels);
                }
            }
            if all.is_empty() {
                self.0.remove(&whose);
            }
        }
        if let Some(new) = new {
            let all = self.0.entry(Whose::of(new)).or_default();
            let alike = all.entry(labels(new)).or_insert_with(|| Alike {
                labelled: json!({"metadata": {"labels": string_map(new, "labels").clone()}}),
                numbers: Numbers::default(),
                count: 0,
            });
            alike.numbers.add(Numbers::of(new));
            alike.count += 1;
        }
    }

    pub(super) fn owned(&self, uid: &str) -> impl Iterator<Item = &Alike> {
        let all = self.0.get(&Whose::Owned(uid.to_owned()));
        all.into_iter().flat_map(BTreeMap::values)
    }

    pub(super) fn orphans(&self, namespace: &str) -> impl Iterator<Item = &Alike> {
        let all = self.0.get(&Whose::Orphans(namespace.to_owned()));
        all.into_iter().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod in short: its owner's uid (`-` for none), the value of a label, and letters: `r` ready, `f` failed, `t` terminating;
    /// the kind that the reference names.
    fn pod(short: &str) -> Value {
        let parts: Vec<&str> = short.split(' ').collect();
        let is = |letter: char| parts.get(2).is_some_and(|state| state.contains(letter));
        let kind = parts.get(3).copied().unwrap_or("ReplicaSet");
        let owners = json!([{"kind": kind, "uid": parts[0], "controller": true}]);
        let mut pod = json!({
            "metadata": {"namespace": "d", "labels": {"l": parts[1]}},
            "status": {
                "phase": if is('f') { "Failed" } else { "Running" },
                "conditions": [{"type": "Ready", "status": if is('r') { "True" } else { "False" }}],
            },
        });
        if parts[0] != "-" {
            pod["metadata"]["ownerReferences"] = owners;
        }
        if is('t') {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        pod
    }

    /// `label active ready terminating` of each, of those of the owner `o`, and of orphans.
    fn told(tallies: &Tallies) -> [Vec<String>; 2] {
        let text = |alike: &Alike| {
            let numbers = alike.numbers;
            let label = string_map(&alike.labelled, "labels")["l"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            format!(
                "{label} {} {} {}",
                numbers.active, numbers.ready, numbers.terminating
            )
        };
        [
            tallies.owned("o").map(text).collect(),
            tallies.orphans("d").map(text).collect(),
        ]
    }

    fn owned_texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_changes_is_counted() {
        let mut tallies = Tallies::default();
        let mut check = |old: &str, new: &str, owned: &[&str], orphans: &[&str]| {
            let of = |short: &str| (!short.is_empty()).then(|| pod(short));
            tallies.change(of(old).as_ref(), of(new).as_ref());
            let [is, alone] = told(&tallies);
            assert_eq!(
                (is, alone),
                (owned_texts(owned), owned_texts(orphans)),
                "{old} -> {new}"
            );
        };
        check("", "o a", &["a 1 0 0"], &[]);
        // What kind the reference names does not matter.
        check("", "o a f Foo", &["a 1 0 0"], &[]);
        check("o a f Foo", "o a r Foo", &["a 2 1 0"], &[]);
        check("o a r Foo", "", &["a 1 0 0"], &[]);
        check("o a", "o a r", &["a 1 1 0"], &[]);
        check("", "o a", &["a 2 1 0"], &[]);
        check("", "x a", &["a 2 1 0"], &[]);
        check("o a", "o b", &["a 1 1 0", "b 1 0 0"], &[]);
        check("o b", "- b", &["a 1 1 0"], &["b 1 0 0"]);
        check("- b", "o b", &["a 1 1 0", "b 1 0 0"], &[]);
        check("o b", "o b f", &["a 1 1 0", "b 0 0 0"], &[]);
        check("o a r", "o a rt", &["a 0 0 1", "b 0 0 0"], &[]);
        check("o b f", "o b ft", &["a 0 0 1", "b 0 0 0"], &[]);
        check("o b ft", "", &["a 0 0 1"], &[]);
        check("o a rt", "", &[], &[]);
    }
}
