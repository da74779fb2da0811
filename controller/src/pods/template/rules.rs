//! What is wrong with a pod template: the API server's own rules (`pod_rules`), and those of sets of pods.

use pod_rules::FieldError;
use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::pod::{self, Release, Scope};
use serde_json::{Value, json};

const PATH: &str = "spec.template";

/// Everything that the API server would find wrong with the template. Each of the `claims` counts as a volume of its name after the
/// template's own, as OpenKruise adds them.
pub(crate) fn pod_template(template: &Value, claims: &[Value]) -> Vec<FieldError> {
    let mut template = template.clone();
    if !claims.is_empty()
        && let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(volumes) = spec.entry("volumes").or_insert_with(|| json!([])).as_array_mut()
    {
        volumes.extend(claims.iter().map(|claim| {
            let name = claim.pointer("/metadata/name").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
        }));
    }
    let template = shared_json::to_value(&template).unwrap_or_default();
    let mut errors = Errors::default();
    let scope = Scope {
        release: Release::V1_32,
        ..Scope::TEMPLATE
    };
    pod::template(&scope, &template, &Path::new(PATH), &mut errors);
    errors.into_vec()
}

/// What a set of pods that are to run for good cannot have; `kind` is its kind, as refusals name it.
pub(crate) fn of_sets(template: &Value, kind: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = template.pointer("/spec/restartPolicy").and_then(Value::as_str);
    if let Some(policy) = policy.filter(|policy| !matches!(*policy, "" | "Always")) {
        let path = format!("{PATH}.spec.restartPolicy");
        errors.push(FieldError::not_supported(path, policy, &["Always"]));
    }
    let deadline = template.pointer("/spec/activeDeadlineSeconds");
    if deadline.is_some_and(|value| !value.is_null()) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        let path = format!("{PATH}.spec.activeDeadlineSeconds");
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}
