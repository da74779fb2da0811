//! The annotation of client-side apply, which `kubectl apply --server-side` respects and refreshes.

use super::compare::compare;
use super::error::Conflict;
use super::to_set::to_field_set;
use super::types::Type;
use shared_json::Value;
use std::collections::BTreeSet;

/// The field manager that stands for kubectl's server-side apply.
pub(super) const KUBECTL: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The conflicts that the annotation does not settle: a field that is still as client-side apply left it may be taken.
pub(super) fn unsettled(
    of: Type<'_>,
    live: &Value,
    api_version: &str,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let annotation = live
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(ANNOTATION))
        .and_then(Value::as_str);
    let Some(last) = annotation.and_then(|text| shared_json::from_str::<Value>(text).ok()) else {
        return conflicts;
    };
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return conflicts;
    }
    let changes = compare(of, &last, live);
    let ours = to_field_set(of, &last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    let ours: BTreeSet<String> = ours.paths().into_iter().collect();
    conflicts
        .into_iter()
        .filter(|conflict| !ours.contains(&conflict.path))
        .collect()
}

/// Brings the annotation up to date, if the object has one.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    if annotations
        .get(ANNOTATION)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    let mut applied = applied.clone();
    if let Some(applied) = applied
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        applied.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), format!("{applied}\n").into());
}
