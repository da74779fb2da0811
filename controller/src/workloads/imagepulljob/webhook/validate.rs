//! The errors of an ImagePullJob.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::field_error::go_quote;
use serde_json::{Value, json};

use crate::api::v1beta1::ImagePullJobSpec;
use crate::images::{TIMEOUT_S, rules};

/// Whether an update has other Secrets.
pub(super) fn changed_secrets(old: &Value, new: &Value) -> bool {
    let secrets = |job: &Value| {
        let secrets = job.pointer("/spec/pullSecrets").and_then(Value::as_array);
        secrets.cloned().unwrap_or_default()
    };
    secrets(old) != secrets(new)
}

/// The first error of a job; nothing means that it is allowed. Texts and their order are those of OpenKruise.
pub(super) fn validate_job(job: &Value) -> Option<String> {
    let mut spec = job.get("spec").cloned().unwrap_or_else(|| json!({}));
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
        // Go reads empty values where there are none.
        fields.entry("image").or_insert_with(|| json!(""));
        fields.entry("completionPolicy").or_insert_with(|| json!({}));
    }
    let spec: ImagePullJobSpec = match serde_json::from_value(spec) {
        Ok(spec) => spec,
        Err(error) => return Some(error.to_string()),
    };
    rules::selectors(
        spec.template.selector.as_ref(),
        spec.template.pod_selector.as_ref(),
    )
    .or_else(|| match spec.image.is_empty() {
        true => Some("image can not be empty".to_owned()),
        false => rules::image(&spec.image),
    })
    .or_else(|| parallelism(spec.template.parallelism.as_ref()?))
    .or_else(|| completion(&spec))
}

fn parallelism(parallelism: &IntOrString) -> Option<String> {
    let number = match parallelism {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) if text.ends_with('%') => {
            return Some("parallelism does not support percentage value".to_owned());
        }
        IntOrString::String(text) => match crate::go_values::integer(text) {
            Some(number) => number,
            None => {
                let text = go_quote(text);
                return Some(format!(
                    "parallelism must be a valid integer: strconv.ParseInt: parsing {text}: invalid syntax"
                ));
            }
        },
    };
    (number < 0).then(|| "parallelism must be non-negative".to_owned())
}

fn completion(spec: &ImagePullJobSpec) -> Option<String> {
    let policy = &spec.template.completion_policy;
    let timeout = spec
        .template
        .pull_policy
        .as_ref()
        .and_then(|pull| pull.timeout_seconds);
    let timeout = i64::from(timeout.unwrap_or(TIMEOUT_S));
    let is_short = policy
        .active_deadline_seconds
        .is_some_and(|deadline| timeout > deadline);
    if is_short && policy.kind.as_deref() == Some("Always") {
        return Some(
            "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)"
                .to_owned(),
        );
    }
    rules::completion(policy)
}
