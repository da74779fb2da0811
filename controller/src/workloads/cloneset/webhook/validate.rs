//! What is wrong with a CloneSet.

use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, selectors};

use super::{forbid, strategy};
use crate::api::v1alpha1::CloneSetSpec;
use crate::kit::go_syntax;
use crate::pods::template::rules;

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts are
/// those of OpenKruise.
///
/// What needs the cluster (whether the pods in `podsToDelete` exist) is not checked here.
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
    if selector(&spec, &mut errors) {
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

/// `must be greater than or equal to 0`.
pub(super) fn non_negative(path: &str, number: Option<i32>, errors: &mut Vec<FieldError>) {
    if let Some(number) = number.filter(|number| *number < 0) {
        errors.push(FieldError::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        ));
    }
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

/// Checks the selector, and the template's labels against it. Whether Go can make a selector of it: only then the real webhook looks
/// at the template.
fn selector(spec: &CloneSetSpec, errors: &mut Vec<FieldError>) -> bool {
    let path = "spec.selector";
    let selector = &spec.selector;
    let value = shared_json::to_value(selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&value), &Path::new(path), &mut found);
    errors.extend(found.into_vec());
    let is_empty = selectors::is_empty(&value);
    if is_empty {
        let detail = "empty selector is invalid for cloneset";
        errors.push(FieldError::invalid_shown(
            path,
            go_syntax::selector(selector),
            detail,
        ));
    }
    let Some(matcher) = selectors::is_usable(&value)
        .then(|| Selector::try_from(selector.clone()).ok())
        .flatten()
    else {
        errors.push(FieldError::invalid_shown(path, go_syntax::selector(selector), ""));
        return false;
    };
    let labels = spec
        .template
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    if !is_empty && !matcher.matches(&labels) {
        let value: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key:?}:{value:?}"))
            .collect();
        // A map that is not there prints otherwise than an empty one.
        let value = match value.is_empty() {
            true => "map[string]string(nil)".to_owned(),
            false => format!("map[string]string{{{}}}", value.join(", ")),
        };
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid_shown(
            "spec.template.metadata.labels",
            value,
            detail,
        ));
    }
    true
}
