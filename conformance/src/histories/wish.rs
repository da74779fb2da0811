//! The spec that the user of a history asks for: the common part of all kinds.

use std::time::Duration;

use client_kit::Random;
use shared_json::{Value, json};

use super::deeds::Deeds;
use super::errand::Errand;
use crate::history::Change;
use crate::recording::environment::Environment;

/// The time after which everything has come to rest: a write that no watch delivered is looked up after five minutes, and then
/// there may be as much to do as at the start.
const REST: Duration = Duration::from_secs(600);

/// The labels that hold pods: before deletion and update while they are `yes`, before service until they are.
pub(super) const HELD_BEFORE_DELETE: &str = "hold/delete";
pub(super) const HELD_BEFORE_UPDATE: &str = "hold/update";
pub(super) const HELD_BEFORE_SERVICE: &str = "hold/service";

/// Where the pods' volumes come from.
pub(super) const STORAGE_CLASS: &str = "disks";

/// The wanted state of a set, and the rules by which its history is judged.
pub(super) trait Wish {
    /// The set's API version.
    fn api_version(&self) -> &'static str;

    /// The set's kind.
    fn kind(&self) -> &'static str;

    /// The set's resource, as histories name it.
    fn resource(&self) -> &'static str;

    /// Whether the set belongs to no namespace.
    fn is_of_the_cluster(&self) -> bool {
        false
    }

    /// The test bed: gates, images, and whether OpenKruise's daemon runs on the nodes.
    fn environment(&self) -> Environment {
        Environment::default()
    }

    /// Requests in place of a change of the spec, all made at the same time. These are the names of the pods that stay.
    fn errands(&mut self, _pods: &[&str], _random: &mut Random) -> Option<Vec<Errand>> {
        None
    }

    /// Whether the set may be deleted once it has come to its end.
    fn may_end(&self) -> bool {
        false
    }

    /// The time between the end of the weather and the last change of the spec.
    fn calm(&self) -> Duration {
        Duration::ZERO
    }

    /// The time after the last change of the spec after which everything has come to rest.
    fn rest(&self) -> Duration {
        REST
    }

    /// Asks for something else.
    fn change(&mut self, random: &mut Random);

    /// Removes everything from the spec that keeps the set from reaching it.
    fn come_to_rest(&mut self);

    /// The set before anything is asked of it.
    fn object(&self) -> Value;

    /// The objects that are created after the set.
    fn after(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The fields of the spec that may change.
    fn spec(&self) -> Value;

    /// Asks for one pod less, and for this one to go: the change of the spec, if that can be asked.
    fn without(&mut self, pod: &str) -> Option<Value>;

    /// The violations in a history; empty if all is well.
    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String>;

    /// The differences between the spec and the set with its pods at the end.
    fn unlike(&self, set: &Value, pods: &[Value]) -> Vec<String>;
}

/// Whether pods are held before they are deleted, before they are updated in place, and before they are in service; and whether a
/// pod that is held is marked as not ready.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hooks([bool; 4]);

impl Hooks {
    pub(super) fn random(random: &mut Random) -> Self {
        Self([(); 4].map(|()| random.below(2) == 1))
    }

    /// The field `lifecycle` of a spec.
    pub(super) fn spec(self) -> Value {
        let [before_delete, before_update, before_service, not_ready] = self.0;
        let hook = |on: bool, label: &str| match on {
            true => json!({"labelsHandler": {label: "yes"}, "markPodNotReady": not_ready.then_some(true)}),
            false => Value::Null,
        };
        json!({
            "preDelete": hook(before_delete, HELD_BEFORE_DELETE),
            "inPlaceUpdate": hook(before_update, HELD_BEFORE_UPDATE),
            "preNormal": hook(before_service, HELD_BEFORE_SERVICE),
        })
    }
}

/// An object as it is created: fields that are null only take something off in a patch.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name.to_string(), without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn index(random: &mut Random, below: u64) -> usize {
    usize::try_from(random.below(below)).unwrap_or(0)
}

/// A number up to `max`, or a share.
pub(super) fn number(random: &mut Random, max: u64, shares: [&str; 3]) -> Value {
    match random.below(6) {
        share @ 0..=2 => json!(shares[usize::try_from(share).unwrap_or(0)]),
        _ => json!(random.below(max + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_created_without_nulls() {
        let patch = json!({"a": null, "b": {"c": null, "d": [{"e": null}, 1]}});
        assert_eq!(without_nulls(&patch), json!({"b": {"d": [{}, 1]}}));
    }
}
