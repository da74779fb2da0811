//! Errors in the workload of a spread.

use std::sync::Arc;

use kube::ResourceExt as _;
use pod_rules::FieldError;
use pod_rules::field_error::go_quote;

use crate::api::v1alpha1::{TargetReference, WorkloadSpread};
use crate::injection::spreads::white_list::WhiteList;
use crate::kit::{go_syntax, selector};
use crate::targets::{group_of, is_same};

/// The place of the reference.
const PATH: &str = "spec.targetRef";
/// The groups of the kinds that every spread may name.
const KINDS: [(&str, &[&str]); 5] = [
    ("CloneSet", &["apps.kruise.io"]),
    ("Deployment", &["apps"]),
    ("Job", &["batch"]),
    ("ReplicaSet", &["apps"]),
    ("StatefulSet", &["apps", "apps.kruise.io"]),
];

/// A reference in Go's syntax.
fn shown(target: &TargetReference) -> String {
    format!(
        "v1alpha1.TargetReference{{APIVersion:{}, Kind:{}, Name:{}}}",
        go_quote(&target.api_version),
        go_quote(&target.kind),
        go_quote(&target.name)
    )
}

fn invalid(target: &TargetReference, detail: impl Into<String>) -> FieldError {
    FieldError::invalid_shown(PATH, shown(target), detail)
}

/// Errors in the reference.
pub(super) fn reference(spread: &WorkloadSpread, list: &WhiteList) -> Vec<FieldError> {
    let Some(target) = &spread.spec.target_ref else {
        return vec![FieldError::required(
            PATH,
            "no targetRef defined in WorkloadSpread",
        )];
    };
    let TargetReference {
        api_version,
        kind,
        name,
    } = target;
    if [api_version, kind, name].into_iter().any(String::is_empty) {
        return vec![invalid(
            target,
            "empty TargetReference is not valid for WorkloadSpread.",
        )];
    }
    match KINDS.iter().find(|(known, _)| known == kind) {
        Some((_, groups)) if groups.contains(&group_of(api_version)) => Vec::new(),
        Some(_) => vec![invalid(
            target,
            format!("TargetReference is not valid for {kind}."),
        )],
        None if list.permits(api_version, kind) => Vec::new(),
        None => vec![invalid(target, "TargetReference's GroupKind is not permitted.")],
    }
}

/// The error in the filter, if there is one.
pub(super) fn filter(spread: &WorkloadSpread) -> Option<FieldError> {
    let filter = spread.spec.target_filter.as_ref()?.selector.as_ref()?;
    let error = selector::problem(filter)?;
    Some(FieldError::invalid_shown(
        "spec.targetFilter.selector",
        go_syntax::selector(filter),
        error,
    ))
}

/// The first spread over the same workload.
pub(super) fn conflict(spread: &WorkloadSpread, others: &[Arc<WorkloadSpread>]) -> Option<FieldError> {
    let target = spread.spec.target_ref.as_ref()?;
    let name = spread.metadata.name.as_deref().unwrap_or_default();
    let is_over = |other: &&Arc<WorkloadSpread>| {
        let theirs = other.spec.target_ref.as_ref();
        other.name_any() != name && theirs.is_some_and(|theirs| is_same(theirs, target))
    };
    let other = others.iter().find(is_over)?.name_any();
    let detail = format!("ws.spec.targetRef is in conflict with other WorkloadSpread {other}");
    Some(invalid(target, detail))
}

/// A change of the workload.
pub(super) fn unchanged(new: &WorkloadSpread, old: &WorkloadSpread) -> Option<FieldError> {
    let (target, before) = (new.spec.target_ref.as_ref()?, old.spec.target_ref.as_ref()?);
    let detail = "change TargetReference is not permitted for WorkloadSpread";
    (!is_same(target, before)).then(|| invalid(target, detail))
}
