//! The defaults of jobs that pull images.

use serde_json::{Map, Value, json};

use super::{BACKOFF_LIMIT, TIMEOUT_S};

/// Fields that Go decodes into numbers, and the struct that its decoder names before them.
const NUMBERS: [(&str, &str, &str); 4] = [
    ("/pullPolicy/timeoutSeconds", "PullPolicy.spec", "int32"),
    ("/pullPolicy/backoffLimit", "PullPolicy.spec", "int32"),
    (
        "/completionPolicy/activeDeadlineSeconds",
        "CompletionPolicy.spec",
        "int64",
    ),
    (
        "/completionPolicy/ttlSecondsAfterFinished",
        "CompletionPolicy.spec",
        "int32",
    ),
];

/// Fills the defaults into the spec of a job, `v1alpha1` or `v1beta1`. As in OpenKruise, a pull policy of `v1beta1` that is
/// incomplete stays so if nothing else is missing. `is_single`: the job pulls one image, and has a policy for an image that is there.
///
/// # Errors
/// The decoder's text when a number is none.
pub(crate) fn fill(job: &mut Value, is_single: bool) -> Result<(), String> {
    let is_old = job.get("apiVersion").and_then(Value::as_str) == Some("apps.kruise.io/v1alpha1");
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    numbers(&Value::Object(spec.clone()))?;
    let mut missing = is_old;
    change(spec, "completionPolicy", |completion| {
        if completion.get("type").is_none_or(is_empty) {
            completion.insert("type".to_owned(), json!("Always"));
            missing = true;
        }
    });
    if is_single && spec.get("imagePullPolicy").is_none_or(is_empty) {
        spec.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
        missing = true;
    }
    missing |= spec.get("pullPolicy").is_none_or(Value::is_null);
    if missing {
        change(spec, "pullPolicy", pull_policy);
    }
    Ok(())
}

/// Fills the defaults into a pull policy.
fn pull_policy(policy: &mut Map<String, Value>) {
    for (field, default) in [("timeoutSeconds", TIMEOUT_S), ("backoffLimit", BACKOFF_LIMIT)] {
        if policy.get(field).is_none_or(Value::is_null) {
            policy.insert(field.to_owned(), json!(default));
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Changes a field that is an object; an empty one where there is none.
fn change(spec: &mut Map<String, Value>, field: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    let mut object = match spec.remove(field) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    change(&mut object);
    spec.insert(field.to_owned(), Value::Object(object));
}

fn numbers(spec: &Value) -> Result<(), String> {
    for (field, of, kind) in NUMBERS {
        if spec.pointer(field).is_some_and(Value::is_string) {
            let path = field.replace('/', ".");
            return Err(format!(
                "json: cannot unmarshal string into Go struct field {of}{path} of type {kind}"
            ));
        }
    }
    Ok(())
}
