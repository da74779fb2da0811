//! Jobs and CronJobs.

use std::collections::BTreeSet;

use machinery::selector::matches_selector;
use pod_rules::schedule::Schedule;
use pod_rules::{names, zones};
use shared_json::{Value, json};

use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;
use super::pod::{self, Scope};
use super::{go, selectors};

const INDEXED_MOST: i64 = 100_000;
const INDEXED_MOST_OF_MANY: i64 = 10_000;

/// A Job.
pub(super) fn job(job: &Value, errors: &mut Errors) {
    let spec = job.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    generated_selector(job, spec, errors);
    whole_spec(spec, &path, errors);
    let completions = spec.int("completions").unwrap_or_default();
    if is_indexed(spec) && completions > 0 {
        let name = job.part("metadata").map_or("", |meta| meta.text("name"));
        let last = format!("{name}-{}", completions - 1);
        if !names::label_problems(&last).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {last}");
            errors.invalid(&Path::new("metadata.name"), name, detail);
        }
    }
}

pub(super) fn is_indexed(spec: &Value) -> bool {
    spec.text("completionMode") == "Indexed"
}

/// A selector that the server makes must be the one it would make.
fn generated_selector(job: &Value, spec: &Value, errors: &mut Errors) {
    let Some(selector) = spec.part("selector").filter(|_| !spec.is_true("manualSelector")) else {
        return;
    };
    let meta = job.part("metadata").unwrap_or(&NOTHING);
    let (uid, name) = (meta.text("uid"), meta.text("name"));
    let path = Path::new("spec.template.metadata.labels");
    let labels = spec
        .part("template")
        .and_then(|template| template.part("metadata"))
        .unwrap_or(&NOTHING)
        .map("labels");
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        let detail = format!("must be '{value}'");
        match labels.get(key).and_then(Value::as_str) {
            None => errors.required(&path.key(key), &detail),
            Some(present) if present != value => {
                errors.invalid(&path.key(key), Value::Object(labels.clone()), detail);
            }
            Some(_) => {}
        }
    }
    let own: shared_json::Map = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    if selectors::is_usable(selector) && !matches_selector(Some(selector), &own) {
        let shown = selectors::shown(selector);
        errors.invalid(
            &Path::new("spec.selector"),
            shown,
            "`selector` not auto-generated",
        );
    }
}

pub(super) fn whole_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    job_spec(spec, path, errors);
    let at = path.field("selector");
    match spec.part("selector") {
        None => errors.required(&at, ""),
        selector => selectors::selector(selector, &at, errors),
    }
    if spec.part("selector").is_none_or(selectors::is_usable) {
        let meta = spec
            .part("template")
            .and_then(|template| template.part("metadata"));
        let labels = meta.unwrap_or(&NOTHING).map("labels");
        if !matches_selector(spec.part("selector"), labels) {
            let shown = meta.and_then(|meta| meta.part("labels")).cloned();
            errors.invalid(
                &path.field("template.metadata.labels"),
                shown.unwrap_or_default(),
                "`selector` does not match template `labels`",
            );
        }
    }
}

fn job_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.not_negative(&path.field(field), spec.int(field));
    }
    let per_index = spec.int("backoffLimitPerIndex");
    let failed = spec.int("maxFailedIndexes");
    if failed.is_some() && per_index.is_none() {
        let detail = "when maxFailedIndexes is specified";
        errors.required(&path.field("backoffLimitPerIndex"), detail);
    }
    if let Some(manager) = spec.text_if_set("managedBy") {
        let at = path.field("managedBy");
        domain_path(manager, &at, errors);
        if manager.len() > names::LABEL_BYTES_MAX {
            errors.too_long(&at, names::LABEL_BYTES_MAX);
        }
    }
    if let Some(mode) = spec.text_if_set("completionMode") {
        errors.one_of_or_empty(&path.field("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    if is_indexed(spec) {
        indexed(spec, path, errors);
    }
    if spec
        .text_if_set("completionMode")
        .is_none_or(|mode| mode == "NonIndexed")
    {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = spec.int(field) {
                errors.invalid(&path.field(field), value, "requires indexed completion mode");
            }
        }
    }
    failure_policy(spec, path, errors);
    if let Some(policy) = spec.part("successPolicy") {
        let at = path.field("successPolicy");
        if is_indexed(spec) {
            success_policy(spec, policy, &at, errors);
        } else {
            let shown = go::text("batch.SuccessPolicy", Some(policy));
            errors.invalid_shown(&at, shown, "requires indexed completion mode");
        }
    }
    if let Some(policy) = spec.text_if_set("podReplacementPolicy") {
        let known: &[&str] = if spec.has("podFailurePolicy") {
            &["Failed"]
        } else {
            &["Failed", "TerminatingOrFailed"]
        };
        errors.one_of_or_empty(&path.field("podReplacementPolicy"), policy, known);
    }
    let template = spec.part("template").unwrap_or(&NOTHING);
    pod::template(&Scope::TEMPLATE, template, &path.field("template"), errors);
    let policy = template
        .part("spec")
        .map_or("", |spec| spec.text("restartPolicy"));
    let at = path.field("template.spec.restartPolicy");
    match policy {
        "Always" | "" => errors.required(&at, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid(&at, policy, detail);
        }
        "OnFailure" | "Never" => {}
        other => errors.not_supported(&at, other, &["OnFailure", "Never"]),
    }
}

fn indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (completions, parallelism) = (spec.int("completions"), spec.int("parallelism"));
    let failed = spec.int("maxFailedIndexes");
    let failed_path = path.field("maxFailedIndexes");
    let parallelism_path = path.field("parallelism");
    if completions.is_none() {
        errors.required(&path.field("completions"), "when completion mode is Indexed");
    }
    if let Some(parallelism) = parallelism.filter(|n| *n > INDEXED_MOST) {
        let detail = format!("must be less than or equal to {INDEXED_MOST} when completion mode is Indexed");
        errors.invalid(&parallelism_path, parallelism, detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        errors.invalid(&failed_path, failed, "must be less than or equal to completions");
    }
    if let Some(failed) = failed.filter(|n| *n > INDEXED_MOST) {
        let detail = format!("must be less than or equal to {INDEXED_MOST}");
        errors.invalid(&failed_path, failed, detail);
    }
    let many = completions.is_some_and(|n| n > INDEXED_MOST) && spec.has("backoffLimitPerIndex");
    if !many {
        return;
    }
    let detail = format!(
        "must be less than or equal to {INDEXED_MOST_OF_MANY} when completions are above {INDEXED_MOST} and used with \
         backoff limit per index"
    );
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {INDEXED_MOST}");
        errors.required(&failed_path, &detail);
    }
    if let Some(parallelism) = parallelism.filter(|n| *n > INDEXED_MOST_OF_MANY) {
        errors.invalid(&parallelism_path, parallelism, detail.as_str());
    }
    if let Some(failed) = failed.filter(|n| *n > INDEXED_MOST_OF_MANY) {
        errors.invalid(&failed_path, failed, detail.as_str());
    }
}

/// A name below a domain: `example.com/controller`.
pub(super) fn domain_path(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.is_empty() {
        return errors.required(path, "");
    }
    let parts = text
        .split_once('/')
        .filter(|(host, rest)| !host.is_empty() && !rest.is_empty());
    let Some((host, rest)) = parts else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return errors.invalid(path, text, detail);
    };
    errors.problems(path, host, names::subdomain_problems(host));
    let fits = rest
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b));
    if !fits {
        let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.invalid(path, rest, detail);
    }
}

fn failure_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(policy) = spec.part("podFailurePolicy") else {
        return;
    };
    let path = path.field("podFailurePolicy.rules");
    let rules = policy.list("rules");
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    let pod = spec
        .part("template")
        .and_then(|template| template.part("spec"))
        .unwrap_or(&NOTHING);
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| pod.list(field))
        .map(|container| container.text("name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let at = path.index(index);
        let action_path = at.field("action");
        match rule.text("action") {
            "" => errors.required(
                &action_path,
                "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
            ),
            "FailIndex" if !spec.has("backoffLimitPerIndex") => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.invalid(&action_path, "FailIndex", detail);
            }
            action => {
                errors.one_of_or_empty(&action_path, action, &["Count", "FailIndex", "FailJob", "Ignore"]);
            }
        }
        let (codes, conditions) = (rule.part("onExitCodes"), rule.list("onPodConditions"));
        if let Some(codes) = codes {
            exit_codes(codes, &containers, &at.field("onExitCodes"), errors);
        }
        pod_conditions(conditions, &at.field("onPodConditions"), errors);
        match (codes.is_some(), conditions.is_empty()) {
            (true, false) => errors.invalid_unshown(
                &at,
                "specifying both OnExitCodes and OnPodConditions is not supported",
            ),
            (false, true) => errors.invalid_unshown(
                &at,
                "specifying one of OnExitCodes and OnPodConditions is required",
            ),
            _ => {}
        }
    }
}

fn pod_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if conditions.len() > 20 {
        errors.too_many(path, conditions.len(), 20);
    }
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        let (kind, status) = (condition.text("type"), condition.text("status"));
        errors.problems(&at.field("type"), kind, names::qualified_problems(kind));
        if status.is_empty() {
            let detail = "valid values: [\"False\" \"True\" \"Unknown\"]";
            errors.required(&at.field("status"), detail);
        } else {
            errors.one_of_or_empty(&at.field("status"), status, &["False", "True", "Unknown"]);
        }
    }
}

fn exit_codes(codes: &Value, containers: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let operator = codes.text("operator");
    if operator.is_empty() {
        errors.required(&path.field("operator"), "valid values: [\"In\" \"NotIn\"]");
    } else {
        errors.one_of_or_empty(&path.field("operator"), operator, &["In", "NotIn"]);
    }
    if let Some(name) = codes
        .text_if_set("containerName")
        .filter(|name| !containers.contains(name))
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.field("containerName"), name, detail);
    }
    let path = path.field("values");
    let values = codes.list("values");
    if values.is_empty() {
        errors.invalid(&path, Value::Null, "at least one value is required");
    } else if values.len() > 255 {
        errors.too_many(&path, values.len(), 255);
    }
    let mut seen = BTreeSet::new();
    let mut before = i64::MIN;
    let mut ordered = true;
    for (index, value) in values.iter().enumerate() {
        let code = value.as_i64().unwrap_or_default();
        if operator == "In" && code == 0 {
            errors.invalid(&path.index(index), code, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            errors.duplicate(&path.index(index), code);
        }
        ordered &= before <= code;
        before = code;
    }
    if !ordered {
        errors.invalid(&path, values.to_vec(), "must be ordered");
    }
}

fn success_policy(spec: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("rules");
    let rules = policy.list("rules");
    let completions = spec.int("completions").unwrap_or_default();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&path, detail);
    }
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = path.index(index);
        let (count, indexes) = (rule.int("succeededCount"), rule.text_if_set("succeededIndexes"));
        if count.is_none() && indexes.is_none() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&at, detail);
        }
        let mut total = 0;
        if let Some(indexes) = indexes {
            match count_indexes(indexes, completions) {
                Ok(count) => total = count,
                Err(error) => {
                    let detail = format!("error parsing succeededIndexes: {error}");
                    errors.invalid(&at.field("succeededIndexes"), indexes, detail);
                }
            }
        }
        let Some(count) = count else { continue };
        let at = at.field("succeededCount");
        errors.not_negative(&at, Some(count));
        if count > completions {
            let detail =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.invalid(&at, count, detail);
        }
        if indexes.is_some() && count > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.invalid(&at, count, detail);
        }
    }
}

/// The first and the last of some indexes.
pub(super) type Interval = (i64, i64);

/// Reads `3` or `3-5`.
pub(super) fn interval(text: &str, completions: i64) -> Result<Interval, String> {
    let limits: Vec<&str> = text.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment \"{text}\" violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        ));
    }
    let read = |limit: &str| -> Result<i64, String> {
        let index: i64 = limit
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: \"{limit}\""))?;
        if index >= completions {
            return Err(format!("too large index: \"{limit}\""));
        }
        Ok(index)
    };
    let first = read(limits.first().copied().unwrap_or_default())?;
    let end = limits.get(1).map_or(Ok(first), |limit| read(limit))?;
    if limits.len() == 2 && first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

/// How many indexes `1,3-5` names.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut total = 0;
    let mut last: Option<i64> = None;
    for text in text.split(',') {
        let (first, end) = interval(text, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// A CronJob.
pub(super) fn cron_job(object: &Value, errors: &mut Errors) {
    cron_spec(object, None, errors);
    let name = object.part("metadata").map_or("", |meta| meta.text("name"));
    if name.len() > 52 {
        errors.invalid(
            &Path::new("metadata.name"),
            name,
            "must be no more than 52 characters",
        );
    }
}

/// A changed CronJob.
pub(super) fn cron_job_update(new: &Value, old: &Value, errors: &mut Errors) {
    cron_spec(new, Some(old), errors);
}

fn cron_spec(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let before = old.and_then(|old| old.part("spec"));
    let path = Path::new("spec");
    let schedule = spec.text("schedule");
    let at = path.field("schedule");
    if schedule.is_empty() {
        errors.required(&at, "");
    } else {
        let zones = before.is_some_and(|before| before.text("schedule").contains("TZ"));
        if let Err(error) = Schedule::parse(schedule, "") {
            errors.invalid(&at, schedule, error);
        }
        if schedule.contains("TZ") {
            if zones && spec.has("timeZone") {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                errors.invalid(&at, schedule, detail);
            } else if !zones {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                errors.invalid(&at, schedule, detail);
            }
        }
    }
    errors.not_negative(
        &path.field("startingDeadlineSeconds"),
        spec.int("startingDeadlineSeconds"),
    );
    if before.is_none_or(|before| before.part("timeZone") != spec.part("timeZone")) {
        time_zone(spec, &path.field("timeZone"), errors);
    }
    errors.one_of(
        &path.field("concurrencyPolicy"),
        spec.text("concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    let template = spec
        .part("jobTemplate")
        .and_then(|template| template.part("spec"))
        .unwrap_or(&NOTHING);
    let at = path.field("jobTemplate.spec");
    job_spec(template, &at, errors);
    if let Some(selector) = template.part("selector") {
        let shown = selectors::shown(selector);
        errors.invalid(&at.field("selector"), shown, "`selector` will be auto-generated");
    }
    if template.is_true("manualSelector") {
        errors.not_supported(&at.field("manualSelector"), true, &["nil", "false"]);
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        errors.not_negative(&path.field(field), spec.int(field));
    }
}

fn time_zone(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(zone) = spec.text_if_set("timeZone") else {
        return;
    };
    if zone.is_empty() {
        return errors.invalid(path, zone, "timeZone must be nil or non-empty string");
    }
    let part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    };
    if !zone.split('/').all(part) {
        return errors.invalid(path, zone, format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(path, zone, detail);
    }
    if let Err(error) = zones::exists(zone) {
        errors.invalid(path, zone, error);
    }
}
