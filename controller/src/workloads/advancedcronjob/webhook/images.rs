//! The errors of a template of jobs that pull images.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use pod_rules::FieldError;
use serde_json::Value;

use crate::api::v1beta1::ImageListPullJobSpec;
use crate::images::ImageReference;
use crate::kit::go_syntax;

const PATH: &str = "spec.template.imageListPullJobTemplate.spec";

/// How many images a job may have.
const IMAGES_MAX: usize = 255;
/// For how many seconds a job may run.
const DEADLINE_MAX_S: i64 = 86_400;
/// For how many seconds an image may be pulled unless the job says otherwise.
const PULL_TIMEOUT_S: i32 = 600;

/// The error of a concurrency policy by which such jobs would pile up.
pub(super) fn policy(policy: &str) -> Option<FieldError> {
    (!matches!(policy, "Replace" | "Forbid")).then(|| {
        let detail = format!("concurrencyPolicy should be Replace or Forbid, but current value is: {policy}");
        FieldError::invalid("spec.spec.concurrencyPolicy", policy, detail)
    })
}

/// The first error of the job's spec.
pub(super) fn spec(spec: &Value) -> Option<FieldError> {
    let mut value = spec.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
        fields.entry("images").or_insert_with(|| Value::Array(Vec::new()));
    }
    let spec: ImageListPullJobSpec = match serde_json::from_value(value) {
        Ok(spec) => spec,
        Err(error) => return Some(FieldError::invalid(PATH, "{}", error.to_string())),
    };
    selectors(&spec)
        .or_else(|| images(&spec.images))
        .or_else(|| completion(&spec))
}

fn selectors(spec: &ImageListPullJobSpec) -> Option<FieldError> {
    let at = |field: &str| format!("{PATH}.{field}");
    if let Some(selector) = &spec.template.selector {
        let labels = LabelSelector {
            match_labels: selector.match_labels.clone(),
            match_expressions: selector.match_expressions.clone(),
        };
        let names = selector.names.as_deref().unwrap_or_default();
        let has_labels = labels.match_labels.iter().flatten().next().is_some()
            || labels.match_expressions.iter().flatten().next().is_some();
        let shown = go_syntax::selector(&labels);
        if has_labels && !names.is_empty() {
            let detail = "can not set both names and labelSelector in this spec.selector";
            return Some(FieldError::invalid_shown(at("selector"), shown, detail));
        }
        if let Err(error) = Selector::try_from(labels) {
            let detail = format!("invalid selector: {error}");
            return Some(FieldError::invalid_shown(
                at("selector.labelSelector"),
                shown,
                detail,
            ));
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            let detail = "duplicated name in selector names";
            return Some(FieldError::invalid_shown(
                at("selector.names"),
                go_syntax::texts(names),
                detail,
            ));
        }
    }
    let pods = spec.template.pod_selector.as_ref()?;
    let shown = go_syntax::selector(pods);
    if spec.template.selector.is_some() {
        let detail = "can not set both selector and podSelector";
        return Some(FieldError::invalid_shown(at("podSelector"), shown, detail));
    }
    let error = Selector::try_from(pods.clone()).err()?;
    let detail = format!("invalid podSelector: {error}");
    Some(FieldError::invalid_shown(at("podSelector"), shown, detail))
}

fn images(images: &[String]) -> Option<FieldError> {
    let detail = if images.is_empty() {
        return Some(FieldError::invalid_shown(
            format!("{PATH}.images"),
            "[]string{}",
            "image can not be empty",
        ));
    } else if images.len() > IMAGES_MAX {
        format!("the maximum number of images cannot > {IMAGES_MAX}")
    } else if images.iter().collect::<BTreeSet<_>>().len() < images.len() {
        "images cannot have duplicate values".to_owned()
    } else {
        let bad = images
            .iter()
            .find_map(|image| Some((image, ImageReference::parse(image).err()?)));
        let (image, error) = bad?;
        format!("invalid image {image}: {error}")
    };
    let shown = go_syntax::texts(images);
    Some(FieldError::invalid_shown(format!("{PATH}.images"), shown, detail))
}

fn completion(spec: &ImageListPullJobSpec) -> Option<FieldError> {
    let policy = &spec.template.completion_policy;
    let at = |field: &str| format!("{PATH}.completionPolicy.{field}");
    let kind = policy.kind.as_deref().unwrap_or_default();
    if kind != "Always" {
        let detail = format!("completionPolicy should be Always, but current value is: {kind}");
        return Some(FieldError::invalid(at("type"), kind, detail));
    }
    if let Some(deadline) = policy.active_deadline_seconds {
        let pull = spec
            .template
            .pull_policy
            .as_ref()
            .and_then(|pull| pull.timeout_seconds);
        let pull = pull.unwrap_or(PULL_TIMEOUT_S);
        let detail = if deadline > DEADLINE_MAX_S {
            format!("activeDeadlineSeconds must be less than {DEADLINE_MAX_S}, current value is: {deadline}")
        } else if deadline < i64::from(pull) {
            format!(
                "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds({pull})"
            )
        } else {
            String::new()
        };
        if !detail.is_empty() {
            return Some(FieldError::invalid(at("activeDeadlineSeconds"), deadline, detail));
        }
    }
    policy.ttl_seconds_after_finished.map(|ttl| {
        let detail = "ttlSecondsAfterFinished is not supported in advancedCronJob";
        FieldError::invalid(at("ttlSecondsAfterFinished"), ttl, detail)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// Changes of a template that is fine, and the last part of the error.
    #[rstest]
    #[case::fine(json!({}), "")]
    #[case::by_names(json!({ "selector": { "names": ["a", "b"] } }), "")]
    #[case::names_and_labels(
        json!({ "selector": { "names": ["a"], "matchLabels": { "l": "1" } } }),
        "can not set both names and labelSelector in this spec.selector"
    )]
    #[case::a_name_twice(json!({ "selector": { "names": ["a", "a"] } }), "duplicated name in selector names")]
    #[case::both_selectors(json!({ "selector": {}, "podSelector": {} }), "can not set both selector and podSelector")]
    #[case::none(json!({ "images": [] }), "image can not be empty")]
    #[case::missing(json!({ "images": null }), "image can not be empty")]
    #[case::too_many(
        json!({ "images": (0..256).map(|number| format!("a:{number}")).collect::<Vec<_>>() }),
        "the maximum number of images cannot > 255"
    )]
    #[case::twice(json!({ "images": ["a", "a"] }), "images cannot have duplicate values")]
    #[case::in_capitals(json!({ "images": ["A"] }), "invalid image A: invalid reference format: repository name must be lowercase")]
    #[case::no_image(json!({ "images": ["a b"] }), "invalid image a b: invalid reference format")]
    #[case::never(
        json!({ "completionPolicy": { "type": "Never" } }), "completionPolicy should be Always, but current value is: Never"
    )]
    #[case::too_long(
        json!({ "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 86401 } }),
        "activeDeadlineSeconds must be less than 86400, current value is: 86401"
    )]
    #[case::too_short(
        json!({ "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 599 } }),
        "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(600)"
    )]
    #[case::long_enough(
        json!({ "completionPolicy": { "type": "Always", "activeDeadlineSeconds": 5 }, "pullPolicy": { "timeoutSeconds": 5 } }), ""
    )]
    #[case::time_to_live(
        json!({ "completionPolicy": { "type": "Always", "ttlSecondsAfterFinished": 5 } }),
        "ttlSecondsAfterFinished is not supported in advancedCronJob"
    )]
    fn errors(#[case] changes: Value, #[case] expect: &str) {
        let mut template = json!({ "images": ["nginx:1.20", "r.example.com:5000/a/b_c@sha256:0123456789abcdef0123456789abcdef"],
            "completionPolicy": { "type": "Always" } });
        for (field, value) in changes.as_object().unwrap() {
            template[field] = value.clone();
        }
        let found = spec(&template).map(|error| error.detail).unwrap_or_default();
        assert_eq!(found, expect);
    }

    #[rstest]
    #[case("Replace", true)]
    #[case("Forbid", true)]
    #[case("Allow", false)]
    #[case("", false)]
    fn policies(#[case] word: &str, #[case] fits: bool) {
        assert_eq!(policy(word).is_none(), fits);
    }
}
