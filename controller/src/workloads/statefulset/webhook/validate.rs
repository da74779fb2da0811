//! The errors of a StatefulSet.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::FieldError;
use serde_json::Value;

use super::{forbid, strategy};
use crate::api::v1beta1::StatefulSetSpec;
use crate::kit::go_syntax;
use crate::pods::template::rules::{self, non_negative};

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts and
/// their order are those of OpenKruise. The spec of the pod template is not looked at, as there.
pub(super) fn validate_stateful_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut value = new.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let spec: StatefulSetSpec = match serde_json::from_value(value) {
        Ok(spec) => spec,
        Err(error) => return vec![FieldError::invalid("spec", "{}", error.to_string())],
    };
    let mut errors = Vec::new();
    name(new, &mut errors);
    match spec.pod_management_policy.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required("spec.podManagementPolicy", "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid("spec.podManagementPolicy", other, detail));
        }
    }
    reserved(&spec, &mut errors);
    strategy::scale(&spec, &mut errors);
    strategy::update(&spec, &mut errors);
    retention(&spec, &mut errors);
    non_negative("spec.replicas", spec.replicas, &mut errors);
    if rules::selector(&spec.selector, &spec.template, "statefulset", &mut errors) {
        errors.extend(rules::marks(&spec.template));
    }
    errors.extend(rules::of_sets(&spec.template, "StatefulSet"));
    // OpenKruise lets this pass, and its manager then crashes in a loop.
    non_negative(
        "spec.revisionHistoryLimit",
        spec.revision_history_limit,
        &mut errors,
    );
    // OpenKruise lets this pass, and makes pods with names such as `web--1`.
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
    non_negative("spec.ordinals.start", start, &mut errors);
    errors.extend(old.and_then(|old| forbid::update(new, old)));
    errors
}

/// A pod's name is its host's name, and begins with the set's.
fn name(set: &Value, errors: &mut Vec<FieldError>) {
    let name = set.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.is_empty() {
        return;
    }
    errors.extend(
        pod_rules::names::label_problems(name)
            .into_iter()
            .map(|detail| FieldError::invalid("metadata.name", name, detail)),
    );
}

fn reserved(spec: &StatefulSetSpec, errors: &mut Vec<FieldError>) {
    let list = spec.reserve_ordinals.as_deref().unwrap_or_default();
    let shown: Vec<String> = list.iter().map(go_syntax::int_or_string).collect();
    let shown = format!("[]intstr.IntOrString{{{}}}", shown.join(", "));
    let mut refuse = |detail: String| errors.push(FieldError::invalid_shown("spec", shown.clone(), detail));
    for (at, item) in list.iter().enumerate() {
        match item {
            IntOrString::Int(number) if *number < 0 => {
                refuse(format!("{at} th reserve ordinal is negative: {number}"));
            }
            IntOrString::Int(_) => {}
            IntOrString::String(text) => {
                if !is_range(text) {
                    refuse(format!("{at} th reserve ordinal is not a valid range: {text}"));
                }
                if let Some(error) = range_error(text) {
                    refuse(format!(
                        "{at} th reserve ordinal is invalid: {text}, err = {error}"
                    ));
                }
            }
        }
    }
}

/// Whether a text is two numbers with a hyphen between.
fn is_range(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-')
        .is_some_and(|(from, to)| digits(from) && digits(to))
}

/// The error of reading a range.
fn range_error(text: &str) -> Option<String> {
    let invalid = || Some(format!("invalid range {text}"));
    let parts: Vec<&str> = text.split('-').collect();
    let [from, to] = parts.as_slice() else {
        return invalid();
    };
    let number = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| format!("strconv.Atoi: parsing {text:?}: invalid syntax"))
    };
    match (number(from), number(to)) {
        (Err(error), _) | (_, Err(error)) => Some(error),
        (Ok(from), Ok(to)) if from > to => invalid(),
        _ => None,
    }
}

fn retention(spec: &StatefulSetSpec, errors: &mut Vec<FieldError>) {
    let Some(policy) = &spec.persistent_volume_claim_retention_policy else {
        return;
    };
    for (field, value) in [
        ("whenDeleted", &policy.when_deleted),
        ("whenScaled", &policy.when_scaled),
    ] {
        let value = value.as_deref().unwrap_or_default();
        if !matches!(value, "" | "Retain" | "Delete") {
            let path = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
            errors.push(FieldError::not_supported(path, value, &["Retain", "Delete"]));
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::fine(json!({ "labels": { "app": "x" }, "annotations": { "a.b/c": "any text" } }), "")]
    #[case::a_label(json!({ "labels": { "app": "x", "tier": "not good" } }), "spec.template.metadata.labels")]
    #[case::an_annotation(json!({ "labels": { "app": "x" }, "annotations": { "not good": "" } }), "spec.template.metadata.annotations")]
    fn the_form_of_labels_and_annotations(#[case] metadata: Value, #[case] expect: &str) {
        let set = json!({ "metadata": { "name": "s" }, "spec": {
            "selector": { "matchLabels": { "app": "x" } }, "podManagementPolicy": "Parallel", "replicas": 1,
            "updateStrategy": { "type": "OnDelete" }, "template": { "metadata": metadata },
        } });
        let errors: Vec<String> = validate_stateful_set(&set, None)
            .iter()
            .map(ToString::to_string)
            .collect();
        match expect {
            "" => assert_eq!(errors, Vec::<String>::new()),
            path => assert!(errors.len() == 1 && errors[0].starts_with(path), "{errors:?}"),
        }
    }
}
