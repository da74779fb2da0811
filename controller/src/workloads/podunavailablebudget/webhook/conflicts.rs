//! Budgets that are about the same pods.

use std::sync::Arc;

use kube::ResourceExt as _;
use pod_rules::FieldError;

use super::overlap::overlap;
use super::validate::shown;
use crate::api::v1alpha1::PodUnavailableBudget;
use crate::kit::go_syntax;
use crate::targets::is_same;

/// The first conflict of a budget with others of its namespace.
pub(super) fn conflict(
    budget: &PodUnavailableBudget,
    others: &[Arc<PodUnavailableBudget>],
) -> Option<FieldError> {
    let name = budget.metadata.name.as_deref().unwrap_or_default();
    let others = others.iter().filter(|other| other.name_any() != name);
    let spec = &budget.spec;
    for other in others {
        let name = other.name_any();
        if let (Some(target), Some(theirs)) = (&spec.target_ref, &other.spec.target_ref)
            && is_same(target, theirs)
        {
            let detail =
                format!("pub.spec.targetReference is in conflict with other PodUnavailableBudget {name}");
            return Some(FieldError::invalid_shown(
                "spec.targetReference",
                shown(target),
                detail,
            ));
        }
        if let (Some(selector), Some(theirs)) = (&spec.selector, &other.spec.selector)
            && overlap(selector, theirs)
        {
            let detail = format!("pub.spec.selector is in conflict with other PodUnavailableBudget {name}");
            let shown = go_syntax::selector(selector);
            return Some(FieldError::invalid_shown("spec.selector", shown, detail));
        }
    }
    None
}
