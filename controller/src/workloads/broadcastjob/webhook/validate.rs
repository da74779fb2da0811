//! The errors of a BroadcastJob.

use pod_rules::FieldError;
use serde_json::Value;

use crate::kit::go_syntax;
use crate::pods::template::{defaults, rules};
use crate::workloads::broadcastjob::{NAME_LABEL, UID_LABEL};

/// Everything that is wrong with a job; nothing means that it is allowed. Texts and their order are those of OpenKruise.
pub(super) fn validate_job(job: &Value) -> Vec<FieldError> {
    let mut errors = rules::job_name(job, "BroadcastJob");
    completion_policy(job, &mut errors);
    let nothing = Value::Null;
    let template = job.pointer("/spec/template").unwrap_or(&nothing);
    let restart_policy = template.pointer("/spec/restartPolicy").and_then(Value::as_str);
    let restart_policy = restart_policy.unwrap_or_default();
    if !matches!(restart_policy, "Never" | "OnFailure") {
        let detail = "pod restartPolicy can only be Never or OnFailure";
        errors.push(FieldError::invalid(
            "spec.template.spec.restartPolicy",
            restart_policy,
            detail,
        ));
    }
    labels(template, &mut errors);
    let mut template = template.clone();
    defaults::pod_template(&mut template);
    errors.extend(rules::pod_template(&template, &[]));
    errors
}

/// A job that never ends has no time after its end, and no deadline.
fn completion_policy(job: &Value, errors: &mut Vec<FieldError>) {
    let policy = job.pointer("/spec/completionPolicy");
    let policy = policy.filter(|policy| policy.get("type").and_then(Value::as_str) == Some("Never"));
    for field in ["ttlSecondsAfterFinished", "activeDeadlineSeconds"] {
        let value = policy.and_then(|policy| policy.get(field));
        if let Some(number) = value.and_then(Value::as_i64) {
            let detail = format!("{field} can just work with Always CompletionPolicyType");
            errors.push(FieldError::invalid(
                format!("spec.completionPolicy.{field}"),
                number,
                detail,
            ));
        }
    }
}

/// The labels that the controller gives to pods.
fn labels(template: &Value, errors: &mut Vec<FieldError>) {
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object);
    let is_set = |label: &str| {
        let value = labels.and_then(|labels| labels.get(label));
        value
            .and_then(Value::as_str)
            .is_some_and(|value| !value.is_empty())
    };
    if [NAME_LABEL, UID_LABEL].into_iter().any(is_set) {
        let detail = format!("{NAME_LABEL:?} and {UID_LABEL:?} are not allowed to preset in pod labels");
        errors.push(FieldError::invalid_shown(
            "spec.template.metadata.labels",
            go_syntax::text_map(labels),
            detail,
        ));
    }
}
