//! The errors of a DaemonSet.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::FieldError;
use serde_json::Value;

use super::{forbid, strategy};
use crate::api::v1beta1::DaemonSetSpec;
use crate::pods::template::defaults;
use crate::pods::template::rules::{self, non_negative};

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts and
/// their order are those of OpenKruise.
pub(super) fn validate_daemon_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut value = new.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let spec: DaemonSetSpec = match serde_json::from_value(value) {
        Ok(spec) => spec,
        Err(error) => return vec![FieldError::invalid("spec", "{}", error.to_string())],
    };
    let mut errors: Vec<FieldError> = old.and_then(|old| forbid::update(new, old)).into_iter().collect();
    rules::selected(&spec.selector, &spec.template, "daemonset", &mut errors);
    let mut template = spec.template.clone();
    defaults::pod_template(&mut template);
    errors.extend(rules::pod_template(&template, &[]));
    errors.extend(rules::of_sets(&spec.template, "DaemonSet"));
    non_negative("spec.minReadySeconds", spec.min_ready_seconds, &mut errors);
    strategy::update(&spec, super::mutate::is_v1alpha1(new), &mut errors);
    non_negative(
        "spec.revisionHistoryLimit",
        spec.revision_history_limit,
        &mut errors,
    );
    let lifecycle = spec.lifecycle.as_ref();
    if lifecycle.is_some_and(|lifecycle| lifecycle.in_place_update.is_some()) {
        let detail = "inPlaceUpdate hook has not supported yet";
        errors.push(FieldError::forbidden("spec.lifecycle.inPlaceUpdate", detail));
    }
    burst(&spec, &mut errors);
    errors
}

/// OpenKruise lets a bad number pass: a negative one crashes its manager, and of a text that is none nothing ever comes.
fn burst(spec: &DaemonSetSpec, errors: &mut Vec<FieldError>) {
    let path = "spec.burstReplicas";
    match &spec.burst_replicas {
        Some(IntOrString::Int(number)) => non_negative(path, Some(*number), errors),
        Some(text) => rules::positive_number(path, text, errors),
        None => {}
    }
}
