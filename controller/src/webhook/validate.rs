//! What is wrong with a CloneSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::field::FieldError;
use super::{forbid, strategy, template_validation};
use crate::api::v1alpha1::CloneSetSpec;

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts are
/// those of OpenKruise.
///
/// What needs the cluster (whether the pods in `podsToDelete` exist) is not checked here, see
/// [`review`](super::review()).
#[must_use]
pub fn validate_cloneset(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut value = new.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let spec: CloneSetSpec = match serde_json::from_value(value) {
        Ok(spec) => spec,
        Err(error) => return vec![FieldError::invalid("spec", "{}", error.to_string())],
    };
    let mut errors = Vec::new();
    non_negative("spec.replicas", spec.replicas, &mut errors);
    selector(&spec, &mut errors);
    errors.extend(template_validation::pod_template(
        &spec.template,
        spec.claim_templates(),
    ));
    errors.extend(strategy::scale(&spec));
    errors.extend(strategy::update(&spec));
    non_negative("spec.minReadySeconds", spec.min_ready_seconds, &mut errors);
    // OpenKruise lets this pass, and its manager then crashes in a loop.
    non_negative(
        "spec.revisionHistoryLimit",
        spec.revision_history_limit,
        &mut errors,
    );
    progress_deadline(&spec, &mut errors);
    if let Some(old) = old {
        errors.extend(forbid::update(new, old));
    }
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

fn selector(spec: &CloneSetSpec, errors: &mut Vec<FieldError>) {
    let path = "spec.selector";
    let selector = &spec.selector;
    let before = errors.len();
    for (at, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let path = format!("{path}.operator");
                errors.push(FieldError::invalid(
                    path,
                    format!("{other:?}"),
                    "not a valid selector operator",
                ));
            }
        }
    }
    if selector.match_labels.iter().flatten().count() + selector.match_expressions.iter().flatten().count()
        == 0
    {
        errors.push(FieldError::invalid(
            path,
            go_selector(selector),
            "empty selector is invalid for cloneset",
        ));
        return;
    }
    match Selector::try_from(selector.clone()) {
        Ok(matcher) if errors.len() == before => {
            let labels = spec
                .template
                .pointer("/metadata/labels")
                .and_then(Value::as_object);
            let labels = labels
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect();
            if !matcher.matches(&labels) {
                let value: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{key:?}:{value:?}"))
                    .collect();
                let value = format!("map[string]string{{{}}}", value.join(", "));
                let detail = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid(
                    "spec.template.metadata.labels",
                    value,
                    detail,
                ));
            }
        }
        _ => errors.push(FieldError::invalid(path, go_selector(selector), "")),
    }
}

/// A selector as Go's `%#v` prints it.
pub(super) fn go_selector(selector: &LabelSelector) -> String {
    let labels = match &selector.match_labels {
        Some(labels) if !labels.is_empty() => {
            let pairs: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key:?}:{value:?}"))
                .collect();
            format!("map[string]string{{{}}}", pairs.join(", "))
        }
        _ => "map[string]string(nil)".to_owned(),
    };
    let expressions = match selector.match_expressions.as_deref() {
        Some(list) if !list.is_empty() => {
            let list: Vec<String> = list
                .iter()
                .map(|requirement| {
                    let values: Vec<String> = requirement
                        .values
                        .iter()
                        .flatten()
                        .map(|v| format!("{v:?}"))
                        .collect();
                    let values = match &requirement.values {
                        Some(_) => format!("[]string{{{}}}", values.join(", ")),
                        None => "[]string(nil)".to_owned(),
                    };
                    let (key, operator) = (&requirement.key, &requirement.operator);
                    format!(
                        "v1.LabelSelectorRequirement{{Key:{key:?}, Operator:{operator:?}, Values:{values}}}"
                    )
                })
                .collect();
            format!("[]v1.LabelSelectorRequirement{{{}}}", list.join(", "))
        }
        _ => "[]v1.LabelSelectorRequirement(nil)".to_owned(),
    };
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}")
}
