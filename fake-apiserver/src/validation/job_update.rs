//! What may change of a Job, and of its status.

use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::jobs::{is_indexed, job, whole_spec};
use super::path::Path;
use super::{go, immutable};

/// A changed Job.
pub(super) fn job_update(new: &Value, old: &Value, errors: &mut Errors) {
    // The real server validates the new object whole, and its spec once more with the old one.
    job(new, errors);
    let (spec, before) = (
        new.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    let path = Path::new("spec");
    whole_spec(spec, &path, errors);
    let at = path.field("completions");
    if !is_indexed(spec) {
        immutable(new, old, "/spec/completions", &at, errors);
    } else if let Some(completions) = spec
        .int("completions")
        .filter(|n| Some(*n) != before.int("completions"))
        && Some(completions) != spec.int("parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.invalid(&at, completions, detail);
    }
    immutable(new, old, "/spec/selector", &path.field("selector"), errors);
    template_stays(new, old, &path, errors);
    immutable(
        new,
        old,
        "/spec/completionMode",
        &path.field("completionMode"),
        errors,
    );
    for (field, name) in [
        ("podFailurePolicy", "batch.PodFailurePolicy"),
        ("successPolicy", "batch.SuccessPolicy"),
    ] {
        if field == "successPolicy" {
            for field in ["backoffLimitPerIndex", "managedBy"] {
                let pointer = format!("/spec/{field}");
                immutable(new, old, &pointer, &path.field(field), errors);
            }
        }
        if !same(spec.part(field), before.part(field)) {
            match spec.part(field) {
                Some(policy) => {
                    errors.invalid_shown(&path.field(field), go::text(name, Some(policy)), IMMUTABLE);
                }
                None => errors.invalid(&path.field(field), Value::Null, IMMUTABLE),
            }
        }
    }
}

/// What of a template may change before the first pod runs.
const SCHEDULING: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];

fn template_stays(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let template = |job: &Value| job.pointer("/spec/template").cloned().unwrap_or_default();
    let (new_template, mut old_template) = (template(new), template(old));
    let suspended = old.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true);
    let started = old
        .pointer("/status/startTime")
        .is_some_and(|time| !time.is_null());
    let active = old.pointer("/status/active").and_then(Value::as_i64).unwrap_or(0);
    let still = suspended && (!started || is_suspended(old)) && active == 0;
    if still {
        for field in SCHEDULING {
            take(&mut old_template, &new_template, "/spec", field);
        }
        for field in ["annotations", "labels"] {
            take(&mut old_template, &new_template, "/metadata", field);
        }
        let affinity = |template: &Value| template.pointer("/spec/affinity").cloned();
        let rest = |template: &Value| {
            affinity(template).map(|mut affinity| {
                if let Some(affinity) = affinity.as_object_mut() {
                    affinity.remove("nodeAffinity");
                }
                affinity
            })
        };
        if same(rest(&new_template).as_ref(), rest(&old_template).as_ref()) {
            take(&mut old_template, &new_template, "/spec", "affinity");
        }
        for list in ["containers", "initContainers"] {
            let resources: Vec<Option<Value>> = new_template
                .pointer(&format!("/spec/{list}"))
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|container| container.get("resources").cloned())
                .collect();
            let containers = old_template
                .pointer_mut(&format!("/spec/{list}"))
                .and_then(Value::as_array_mut);
            for (container, resources) in containers.into_iter().flatten().zip(resources) {
                if let (Some(container), Some(resources)) = (container.as_object_mut(), resources) {
                    container.insert("resources".to_owned(), resources);
                }
            }
        }
        if !same(new_template.pointer("/spec"), old_template.pointer("/spec")) {
            let shown = go::text("core.PodSpec", new_template.pointer("/spec"));
            errors.invalid_shown(&path.field("template.spec"), shown, IMMUTABLE);
        }
        return;
    }
    if !same(Some(&new_template), Some(&old_template)) {
        let shown = go::text("core.PodTemplateSpec", Some(&new_template));
        errors.invalid_shown(&path.field("template"), shown, IMMUTABLE);
    }
}

/// Makes a field what it is in `from`.
fn take(template: &mut Value, from: &Value, place: &str, field: &str) {
    let value = from.pointer(place).and_then(|at| at.get(field)).cloned();
    if let Some(at) = template.pointer_mut(place).and_then(Value::as_object_mut) {
        match value {
            Some(value) => at.insert(field.to_owned(), value),
            None => at.remove(field),
        };
    }
}

fn condition_is_true(job: &Value, kind: &str) -> bool {
    job.pointer("/status/conditions")
        .and_then(Value::as_array)
        .is_some_and(|list| {
            list.iter()
                .any(|condition| condition.text("type") == kind && condition.text("status") == "True")
        })
}

fn is_suspended(job: &Value) -> bool {
    condition_is_true(job, "Suspended")
}

/// A changed status of a Job.
pub(super) fn job_status(new: &Value, old: &Value, errors: &mut Errors) {
    let status = new.part("status").unwrap_or(&NOTHING);
    let before = old.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status");
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.not_negative(&path.field(field), status.int(field));
    }
    let is = |kind: &str| condition_is_true(new, kind);
    let was = |kind: &str| condition_is_true(old, kind);
    let (complete, failed) = (is("Complete"), is("Failed"));
    let (met, target) = (is("SuccessCriteriaMet"), is("FailureTarget"));
    let conditions = path.field("conditions");
    let completion = path.field("completionTime");
    let time = |status: &Value, field: &str| status.part(field).cloned();
    let fresh = |kind: &str| is(kind) && !was(kind);
    if complete && failed && (fresh("Complete") || fresh("Failed")) {
        errors.invalid_unshown(&conditions, "cannot set Complete=True and Failed=true conditions");
    }
    if complete && target && (fresh("Complete") || fresh("FailureTarget")) {
        errors.invalid_unshown(
            &conditions,
            "cannot set Complete=True and FailureTarget=true conditions",
        );
    }
    if let Some(at) = time(status, "completionTime").filter(|_| !complete) {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        errors.invalid(&completion, at, detail);
    }
    if complete && !status.has("completionTime") {
        errors.required(&completion, "completionTime is required for Complete jobs");
    }
    if let (Some(start), Some(end)) = (
        status.text_if_set("startTime"),
        status.text_if_set("completionTime"),
    ) && end < start
    {
        errors.invalid(&completion, end, "must be equal to or after `startTime`");
    }
    if fresh("Failed") && !target {
        errors.invalid_unshown(
            &conditions,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    if fresh("Complete") && !met {
        errors.invalid_unshown(
            &conditions,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }
    let finished = complete || failed;
    let count = |field: &str| status.int(field).unwrap_or_default();
    if finished && count("active") > 0 {
        errors.invalid(
            &path.field("active"),
            count("active"),
            "active>0 is invalid for finished job",
        );
    }
    if finished && !status.has("startTime") {
        errors.required(&path.field("startTime"), "startTime is required for finished job");
    }
    if finished && count("terminating") > 0 {
        errors.invalid(
            &path.field("terminating"),
            count("terminating"),
            "terminating>0 is invalid for finished job",
        );
    }
    if count("ready") > count("active") {
        errors.invalid(
            &path.field("ready"),
            count("ready"),
            "cannot set more ready pods than active",
        );
    }
    if met && failed {
        errors.invalid_unshown(
            &conditions,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        );
    }
    if met && target {
        errors.invalid_unshown(
            &conditions,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if was(kind) && !is(kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            errors.invalid_unshown(&conditions, &detail);
        }
    }
    // A job that grows and shrinks may lose indexes that had succeeded.
    let number = |field: &str| new.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
    let is_elastic = new.pointer("/spec/completionMode") == Some(&Value::from("Indexed"))
        && number("completions") == number("parallelism");
    for field in ["failed", "succeeded"] {
        if !(is_elastic && field == "succeeded") && count(field) < before.int(field).unwrap_or_default() {
            let detail = format!("cannot decrease the {field} counter");
            errors.invalid(&path.field(field), count(field), detail);
        }
    }
    if let (Some(new), Some(old)) = (time(status, "completionTime"), time(before, "completionTime"))
        && new != old
    {
        errors.invalid(&completion, new, IMMUTABLE);
    }
    let suspended = new.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true);
    let resuming = was("Suspended") && !is("Suspended");
    if let Some(old) = time(before, "startTime").filter(|_| !suspended && !resuming) {
        let new = time(status, "startTime");
        if new.as_ref() != Some(&old) {
            let detail = "field is immutable for unsuspended job once set";
            errors.invalid(&path.field("startTime"), new.unwrap_or_default(), detail);
        }
    }
    if was("SuccessCriteriaMet") && !met {
        errors.invalid_unshown(
            &conditions,
            "cannot disable the SuccessCriteriaMet=True condition",
        );
    }
}
