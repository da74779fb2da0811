//! The time at which a step took effect: kubectl needs some tenths of a second to start, in which a busy cluster goes on.

use std::collections::BTreeMap;

use shared_json::Value;

use super::load::{Action, Recording};
use crate::history::{Change, ChangeKind, Id, cut};

/// The time of the first change that step `index` made itself; the step's beginning if there is none to be seen.
#[must_use]
pub fn at_ms(recording: &Recording, index: usize) -> i64 {
    let (start_ms, end_ms) = (recording.start_ms(index), recording.end_ms(index));
    let Some(step) = recording.steps.get(index) else {
        return start_ms;
    };
    let start = cut(&recording.history, start_ms);
    let end = cut(&recording.history, end_ms).max(start);
    let mut known: BTreeMap<Id, &Value> = BTreeMap::new();
    for change in &recording.history[..start] {
        known.insert(change.id(), &change.object);
    }
    for change in &recording.history[start..end] {
        let before = known.insert(change.id(), &change.object);
        if step.actions.iter().any(|action| concerns(action, change)) && asks(change, before) {
            return change.at_ms;
        }
    }
    start_ms
}

/// Whether the action may have changed the object.
fn concerns(action: &Action, change: &Change) -> bool {
    if action.file.is_some() || action.verb == "request" {
        return !matches!(
            change.resource.as_str(),
            "pods" | "events" | "controllerrevisions"
        );
    }
    let resource = action.resource.as_deref().unwrap_or_default();
    let plural = resource.split(['.', '/']).next().unwrap_or_default();
    plural == change.resource && (action.names.is_empty() || action.names.contains(&change.name()))
}

/// Whether the change is one of the wanted state, and not of the status.
fn asks(change: &Change, before: Option<&Value>) -> bool {
    if change.kind == ChangeKind::Deleted {
        return true;
    }
    let Some(before) = before else { return true };
    let differs = |pointer: &str| before.pointer(pointer) != change.object.pointer(pointer);
    [
        "/spec",
        "/metadata/generation",
        "/metadata/deletionTimestamp",
        "/metadata/labels",
        "/metadata/annotations",
    ]
    .into_iter()
    .any(differs)
}
