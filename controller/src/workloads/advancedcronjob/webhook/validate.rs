//! The errors of an AdvancedCronJob.

use pod_rules::schedule::Schedule;
use pod_rules::{FieldError, zones};
use serde_json::Value;

use super::mutate::pod_of;
use super::{forbid, images};
use crate::pods::template::{defaults, rules};

/// The numbers that must not be negative.
const NUMBERS: [&str; 3] = [
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
];
/// The templates, of which there must be one.
const TEMPLATES: [&str; 3] = ["jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"];

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts and
/// their order are those of OpenKruise.
pub(super) fn validate_cron(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = match old {
        None => rules::job_name(new, "AdvancedCronJob"),
        Some(_) => Vec::new(),
    };
    let nothing = Value::Null;
    let spec = new.get("spec").unwrap_or(&nothing);
    schedule(spec, &mut errors);
    templates(spec, &mut errors);
    for field in NUMBERS {
        let number = spec.get(field).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), number, detail));
        }
    }
    time_zone(spec, &mut errors);
    errors.extend(old.and_then(|old| forbid::update(new, old)));
    errors
}

fn schedule(spec: &Value, errors: &mut Vec<FieldError>) {
    let path = "spec.schedule";
    let text = spec.get("schedule").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        let detail = "schedule cannot be empty, please provide valid cron schedule.";
        errors.push(FieldError::invalid(path, text, detail));
    }
    if let Err(error) = Schedule::parse(text, "") {
        errors.push(FieldError::invalid(path, text, error));
    }
    if text.contains("TZ") && spec.get("timeZone").is_some_and(|zone| !zone.is_null()) {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(FieldError::invalid(path, text, detail));
    }
}

fn templates(spec: &Value, errors: &mut Vec<FieldError>) {
    let nothing = Value::Null;
    let all = spec.get("template").unwrap_or(&nothing);
    let given = TEMPLATES.map(|field| all.get(field).filter(|template| !template.is_null()));
    for (field, _) in TEMPLATES[..2]
        .iter()
        .zip(given)
        .filter(|(_, given)| given.is_some())
    {
        let mut template = all.pointer(&pod_of(field)).cloned().unwrap_or_default();
        defaults::pod_template(&mut template);
        errors.extend(rules::pod_template(&template, &[]));
    }
    if let Some(template) = given[2] {
        let policy = spec.get("concurrencyPolicy").and_then(Value::as_str);
        errors.extend(images::policy(policy.unwrap_or_default()));
        errors.extend(images::spec(template.get("spec").unwrap_or(&nothing)));
    }
    let must = match given.iter().flatten().count() {
        0 => "must have one template",
        1 => return,
        _ => "can have only one template",
    };
    let detail = format!(
        "spec {must}, either JobTemplate or BroadcastJobTemplate or ImageListPullJobTemplate should be provided"
    );
    errors.push(FieldError::forbidden("spec.template", detail));
}

fn time_zone(spec: &Value, errors: &mut Vec<FieldError>) {
    let path = "spec.timeZone";
    let Some(zone) = spec.get("timeZone").and_then(Value::as_str) else {
        return;
    };
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        errors.push(FieldError::invalid(path, zone, detail));
        return;
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(path, zone, detail));
    }
    if let Err(error) = zones::exists(zone) {
        errors.push(FieldError::invalid(path, zone, error));
    }
}
