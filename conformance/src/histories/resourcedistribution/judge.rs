//! The invariants of a history, checked after every change.
//!
//! An object that another user made is left alone. A copy is only created in a namespace that the targets match. Once things are
//! quiet, each matching namespace has a copy that is equal to the resource, no other namespace has one, and the status counts them.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use crate::histories::commits::{LATE_MS, in_order};
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::history::{Change, ChangeKind, State, list, number, text};

/// ResourceDistributions, as histories name them.
pub(super) const RESOURCE: &str = "resourcedistributions";
/// The copied kinds, as histories name them.
const COPIES: [&str; 2] = ["configmaps", "secrets"];
/// The name of the copies.
const COPY: &str = "conf";
/// A request of the user is done so much later at the most.
const AT_ONCE_MS: i64 = 50;

/// Whether an object is a copy of the distribution.
fn is_copy(object: &Value) -> bool {
    list(object, "/metadata/ownerReferences")
        .iter()
        .any(|owner| text(owner, "/kind") == "ResourceDistribution" && text(owner, "/name") == "a")
}

/// Whether targets match a namespace with these labels.
fn matches(targets: &Value, namespace: &str, labels: Option<&Value>) -> bool {
    let named = |field: &str| {
        list(targets, &format!("/{field}/list"))
            .iter()
            .any(|entry| text(entry, "/name") == namespace)
    };
    let wanted = targets
        .pointer("/namespaceLabelSelector/matchLabels")
        .and_then(Value::as_object);
    let selected = wanted.is_some_and(|wanted| {
        let mut wanted = wanted.into_iter().peekable();
        wanted.peek().is_some()
            && wanted.all(|(key, value)| labels.and_then(|labels| labels.get(&**key)) == Some(value))
    });
    let all = targets.pointer("/allNamespaces") == Some(&Value::Bool(true));
    !named("excludedNamespaces") && (all || named("includedNamespaces") || selected)
}

/// The state at some moment.
#[derive(Default)]
struct World {
    /// The targets, and since when they have been these.
    targets: Vec<(i64, Value)>,
    /// The labels of each namespace, and since when it has had them.
    labels: BTreeMap<String, Vec<(i64, Value)>>,
    /// The namespaces that are going.
    going: BTreeSet<String>,
    /// Whether each object of the copies' name is a copy, by namespace.
    copies: BTreeMap<String, bool>,
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut world = World::default();
    let mut out = Vec::new();
    for change in in_order(history) {
        let fault = match change.resource.as_str() {
            RESOURCE => {
                let targets = change.object.pointer("/spec/targets").cloned();
                world.targets.push((change.at_ms, targets.unwrap_or_default()));
                None
            }
            "namespaces" => {
                world.namespace(change);
                None
            }
            copies if COPIES.contains(&copies) && change.name() == COPY => world.copy(change, deeds),
            _ => None,
        };
        let namespace = text(&change.object, "/metadata/namespace");
        out.extend(fault.map(|fault| format!("at {} ms, in {namespace}: {fault}", change.at_ms)));
    }
    out.extend(at_rest(&State::after(history)));
    out
}

/// The values that the controller may still act on.
fn lately(values: &[(i64, Value)], at_ms: i64) -> impl Iterator<Item = &Value> {
    let since = values.partition_point(|(since_ms, _)| *since_ms <= at_ms - LATE_MS);
    values
        .iter()
        .skip(since.saturating_sub(1))
        .map(|(_, value)| value)
}

impl World {
    fn namespace(&mut self, change: &Change) {
        let name = change.name();
        if !text(&change.object, "/metadata/deletionTimestamp").is_empty() {
            self.going.insert(name.clone());
        }
        if change.kind == ChangeKind::Deleted {
            self.going.remove(&name);
            self.copies.remove(&name);
        }
        let labels = change.object.pointer("/metadata/labels").cloned();
        let known = self.labels.entry(name).or_default();
        known.push((change.at_ms, labels.unwrap_or_default()));
    }

    /// Takes in an object of the copies' name; gives the error in the change.
    fn copy(&mut self, change: &Change, deeds: &Deeds) -> Option<String> {
        let namespace = text(&change.object, "/metadata/namespace");
        let before = self.copies.get(&namespace).copied();
        if change.kind == ChangeKind::Deleted {
            self.copies.remove(&namespace);
            let own = self.going.contains(&namespace) || by_hand(deeds, &namespace, change.at_ms);
            return (before == Some(false) && !own).then(|| "a foreign object was deleted".to_owned());
        }
        let now = is_copy(&change.object);
        self.copies.insert(namespace.clone(), now);
        match before {
            Some(false) if now => Some("a foreign object was made a copy".to_owned()),
            None if now && !self.may_have(&namespace, change.at_ms) => {
                Some("created where no target is".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the targets match a namespace, or have done so lately.
    fn may_have(&self, namespace: &str, at_ms: i64) -> bool {
        let Some(labels) = self.labels.get(namespace) else {
            return false;
        };
        lately(&self.targets, at_ms)
            .any(|targets| lately(labels, at_ms).any(|labels| matches(targets, namespace, Some(labels))))
    }
}

/// Whether the user has just deleted the object of the copies' name.
fn by_hand(deeds: &Deeds, namespace: &str, at_ms: i64) -> bool {
    deeds.errands.iter().any(|(asked_ms, errand)| {
        let Errand::Delete(object) = errand else {
            return false;
        };
        let name = if text(object, "/kind") == "Namespace" {
            "/metadata/name"
        } else {
            "/metadata/namespace"
        };
        text(object, name) == namespace && (0..=AT_ONCE_MS).contains(&(at_ms - asked_ms))
    })
}

/// The differences between the distribution and its copies at the end.
fn at_rest(state: &State) -> Vec<String> {
    let Some(distribution) = state.of(RESOURCE).next() else {
        return vec!["at the end there is no distribution".to_owned()];
    };
    let Some(targets) = distribution.pointer("/spec/targets") else {
        return Vec::new();
    };
    let resource = match text(distribution, "/spec/resource/kind").as_str() {
        "Secret" => "secrets",
        _ => "configmaps",
    };
    let data = distribution.pointer("/spec/resource/data");
    let copies: BTreeMap<String, &Value> = state
        .of(resource)
        .filter(|object| text(object, "/metadata/name") == COPY)
        .map(|object| (text(object, "/metadata/namespace"), object))
        .collect();
    let mut wrongs = Vec::new();
    let (mut wanted, mut equal) = (0, 0);
    for namespace in state.of("namespaces") {
        let name = text(namespace, "/metadata/name");
        let copy = copies.get(&name).copied();
        let matched = matches(targets, &name, namespace.pointer("/metadata/labels"));
        wanted += i64::from(matched);
        match copy {
            None if matched => wrongs.push(format!("at the end {name} has no copy")),
            Some(copy) if matched && is_copy(copy) && copy.pointer("/data") != data => {
                wrongs.push(format!("at the end the copy in {name} is another one"));
            }
            Some(copy) if matched => equal += i64::from(is_copy(copy)),
            Some(copy) if is_copy(copy) => wrongs.push(format!("at the end {name} has a copy")),
            _ => {}
        }
    }
    // A namespace that is named and missing is wanted, too.
    let all = targets.pointer("/allNamespaces") == Some(&Value::Bool(true));
    let names: BTreeSet<String> = state
        .of("namespaces")
        .map(|it| text(it, "/metadata/name"))
        .collect();
    let included = list(targets, "/includedNamespaces/list").iter();
    let missing = included
        .filter(|entry| !all && !names.contains(&text(entry, "/name")))
        .count();
    wanted += i64::try_from(missing).unwrap_or(i64::MAX);
    for (counter, expected) in [
        ("desired", wanted),
        ("succeeded", equal),
        ("failed", wanted - equal),
    ] {
        let found = number(distribution, &format!("/status/{counter}"));
        if found != expected {
            wrongs.push(format!("at the end {counter} is {found}, not {expected}"));
        }
    }
    wrongs
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
