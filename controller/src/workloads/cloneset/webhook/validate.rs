//! Errors in a CloneSet.

use pod_rules::FieldError;
use serde_json::Value;

use super::{forbid, strategy};
use crate::api::v1alpha1::CloneSetSpec;
use crate::pods::template::rules::{self, non_negative};

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts are
/// those of OpenKruise.
///
/// Rules that need the cluster (whether the pods in `podsToDelete` exist) are not checked here.
#[must_use]
pub(crate) fn validate_cloneset(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut value = new.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let spec: CloneSetSpec = match serde_json::from_value(value) {
        Ok(spec) => spec,
        Err(error) => return vec![FieldError::invalid("spec", "{}", error.to_string())],
    };
    let mut errors = old.map_or_else(Vec::new, |old| forbid::update(new, old));
    non_negative("spec.replicas", spec.replicas, &mut errors);
    if rules::selector(&spec.selector, &spec.template, "cloneset", &mut errors) {
        errors.extend(rules::pod_template(&spec.template, spec.claim_templates()));
    }
    errors.extend(rules::of_sets(&spec.template, "cloneset"));
    errors.extend(strategy::scale(&spec));
    errors.extend(strategy::update(&spec));
    // OpenKruise lets this pass, and its manager then crashes in a loop.
    non_negative(
        "spec.revisionHistoryLimit",
        spec.revision_history_limit,
        &mut errors,
    );
    progress_deadline(&spec, &mut errors);
    errors
}

fn progress_deadline(spec: &CloneSetSpec, errors: &mut Vec<FieldError>) {
    let path = "spec.progressDeadlineSeconds";
    let Some(deadline) = spec.progress_deadline_seconds else {
        return;
    };
    non_negative(path, Some(deadline), errors);
    if deadline != i32::MAX && deadline <= spec.min_ready_seconds.unwrap_or(0) {
        errors.push(FieldError::invalid(
            path,
            deadline,
            "must be greater than minReadySeconds",
        ));
    }
}
