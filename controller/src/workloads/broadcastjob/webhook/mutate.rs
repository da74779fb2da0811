//! The defaults of a BroadcastJob.

use serde_json::{Map, Value, json};

use crate::api::v1beta1::BroadcastJobSpec;
use crate::gates::FeatureGates;
use crate::pods::template::spec::{self, Number, default_templates};

/// How many pods may run at a time when `parallelism` is not set.
const DEFAULT_PARALLELISM: i32 = i32::MAX;

/// Fields that Go decodes into numbers.
const NUMBERS: [Number; 3] = [
    (
        "/completionPolicy/ttlSecondsAfterFinished",
        "CompletionPolicy.spec",
    ),
    ("/failurePolicy/restartLimit", "FailurePolicy.spec"),
    ("/completionPolicy/activeDeadlineSeconds", "CompletionPolicy.spec"),
];

/// Fills the defaults into `job`, for a creation (no `old`) or an update. The template's defaults are filled in when it is new or has
/// changed. When nothing is missing and there is no status the object is left as it came, otherwise its spec is written as Go writes it.
///
/// # Errors
/// The decoder's text when the spec is none of a BroadcastJob (status 400).
pub(super) fn mutate_job(job: &mut Value, old: Option<&Value>, gates: &FeatureGates) -> Result<(), String> {
    let Some(spec) = job.get("spec") else {
        return Ok(());
    };
    let canonical = canonical_spec(spec)?;
    let old = old.and_then(|old| canonical_spec(old.get("spec")?).ok());
    let is_new = old.is_none_or(|old| old.get("template") != canonical.get("template"));
    let mut defaulted = canonical.clone();
    default_spec(&mut defaulted);
    if is_new && !gates.is_on("TemplateNoDefaults") {
        default_templates(&mut defaulted);
    }
    // OpenKruise empties the status, which the server ignores; but then it has changed the object, and writes all of it.
    let has_status = job
        .get("status")
        .and_then(Value::as_object)
        .is_some_and(|status| !status.is_empty());
    if (defaulted != canonical || has_status)
        && let Some(job) = job.as_object_mut()
    {
        job.insert("spec".to_owned(), Value::Object(defaulted));
    }
    Ok(())
}

fn default_spec(spec: &mut Map<String, Value>) {
    spec.entry("parallelism").or_insert(json!(DEFAULT_PARALLELISM));
    for (policy, kind) in [("completionPolicy", "Always"), ("failurePolicy", "FailFast")] {
        if let Some(policy) = spec.get_mut(policy).and_then(Value::as_object_mut) {
            policy.entry("type").or_insert(json!(kind));
        }
    }
}

/// The spec as Go writes it after reading it.
fn canonical_spec(spec: &Value) -> Result<Map<String, Value>, String> {
    if spec.get("paused").is_some_and(Value::is_string) {
        let of = "BroadcastJobSpec.spec.paused";
        return Err(format!(
            "json: cannot unmarshal string into Go struct field {of} of type bool"
        ));
    }
    let structs = ["completionPolicy", "failurePolicy"];
    let mut fields = spec::canonical_spec::<BroadcastJobSpec>(spec, &NUMBERS, &structs)?;
    if let Some(policy) = fields.get_mut("failurePolicy").and_then(Value::as_object_mut) {
        policy.retain(|name, field| name != "restartLimit" || *field != json!(0));
    }
    Ok(fields)
}
