//! The allowed changes of a Job, and of its status.

use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::job_status::is_suspended;
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

/// The fields of a template that may change before the first pod runs.
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

/// Sets a field to its value in `from`.
fn take(template: &mut Value, from: &Value, place: &str, field: &str) {
    let value = from.pointer(place).and_then(|at| at.get(field)).cloned();
    if let Some(at) = template.pointer_mut(place).and_then(Value::as_object_mut) {
        match value {
            Some(value) => at.insert(field.to_owned(), value),
            None => at.remove(field),
        };
    }
}
