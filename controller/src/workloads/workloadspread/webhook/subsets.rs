//! Errors in subsets.

use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, pod, selectors};
use shared_json::json;

use super::limits::limits;
use crate::api::v1alpha1::{WorkloadSpread, WorkloadSpreadSubset};

/// The place of the subsets.
pub(super) const PATH: &str = "spec.subsets";

/// Errors in the subsets, but for their patches.
pub(super) fn subsets(spread: &WorkloadSpread) -> Vec<FieldError> {
    let subsets = &spread.spec.subsets;
    if subsets.is_empty() {
        let detail = "subsets number must >= 1 in WorkloadSpread";
        return vec![FieldError::required(PATH, detail)];
    }
    let mut errors = Vec::new();
    for (at, subset) in subsets.iter().enumerate() {
        let path = format!("{PATH}[{at}].name");
        if subset.name.is_empty() {
            errors.push(FieldError::invalid(path, "", ""));
        } else if subsets[..at].iter().any(|other| other.name == subset.name) {
            let detail = format!("duplicated subset name {}", subset.name);
            errors.push(FieldError::invalid(path, subset.name.as_str(), detail));
        }
        errors.extend(constraints(subset, at));
    }
    errors.extend(limits(spread));
    errors
}

/// Errors in the terms and the tolerations of a subset.
fn constraints(subset: &WorkloadSpreadSubset, at: usize) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let path = Path::new(PATH);
    let path = path.index(at);
    if let Some(term) = &subset.required_node_selector_term {
        selectors::node_term(
            &json!(term),
            true,
            &path.field("requiredNodeSelectorTerm"),
            &mut errors,
        );
    }
    // The path is that of the real webhook.
    let preferred = path.field("preferredSchedulingTerms");
    for (index, term) in subset.preferred_node_selector_terms.iter().flatten().enumerate() {
        let at = preferred.index(index);
        if !(1..=100).contains(&term.weight) {
            errors.invalid(&at.field("weight"), term.weight, "must be in the range 1-100");
        }
        selectors::node_term(
            &json!(term.preference),
            true,
            &at.field("preference"),
            &mut errors,
        );
    }
    let tolerations = json!(subset.tolerations);
    let tolerations = tolerations.as_array().map_or(&[][..], |list| list.as_slice());
    pod::tolerations(tolerations, &path.field("tolerations"), &mut errors);
    errors.into_vec()
}
