//! Claims, and the templates of claims: their requests.

use pod_rules::names;
use shared_json::Value;

use super::super::errors::Errors;
use super::super::fields::{Fields, NOTHING};
use super::super::path::Path;
use super::{
    EFFECTS, LIST_MAX, configuration, each, each_unique, full_name, label, label_name, selector, stays,
};

const ALTERNATIVES_MAX: usize = 8;

/// Whether `asked` names a request of the claim, or an alternative of one: `request/alternative`.
fn is_request(claim: &Value, asked: &str) -> bool {
    let (name, alternative) = match asked.split_once('/') {
        Some((name, alternative)) => (name, Some(alternative)),
        None => (asked, None),
    };
    claim.list("requests").iter().any(|request| {
        let has = |wanted: &str| {
            let list = request.list("firstAvailable");
            list.iter().any(|sub| sub.text("name") == wanted)
        };
        request.text("name") == name && alternative.is_none_or(has)
    })
}

pub(super) const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The name of a request of the claim.
pub(super) fn request_name(claim: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in parts {
            label(part, path, errors);
        }
    }
    if name.matches('/').count() > 1 || !is_request(claim, name) {
        errors.invalid(path, name, NO_REQUEST);
    }
}

/// The requests that something is for.
pub(super) fn request_names(claim: &Value, holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("requests");
    each_unique(
        holder.list("requests"),
        LIST_MAX,
        "",
        &at,
        errors,
        |name, at, errors| {
            request_name(claim, name.as_str().unwrap_or_default(), at, errors);
        },
    );
}

/// The request for one kind of device.
fn wanted(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("deviceClassName");
    match request.text("deviceClassName") {
        "" => errors.required(&at, ""),
        name => errors.problems(&at, name, names::subdomain_problems(name)),
    }
    let at = path.field("selectors");
    each(request.list("selectors"), LIST_MAX, &at, errors, selector);
    let (mode, count) = (
        request.text("allocationMode"),
        request.int("count").unwrap_or_default(),
    );
    let at = path.field("count");
    match mode {
        "All" if count != 0 => {
            errors.invalid(&at, count, "must not be specified when allocationMode is 'All'");
        }
        "All" => {}
        "ExactCount" if count <= 0 => errors.invalid(&at, count, "must be greater than zero"),
        "ExactCount" => {}
        other => errors.not_supported(&path.field("allocationMode"), other, &["All", "ExactCount"]),
    }
    let at = path.field("tolerations");
    for (index, toleration) in request.list("tolerations").iter().enumerate() {
        device_toleration(toleration, &at.index(index), errors);
    }
}

fn device_toleration(toleration: &Value, path: &Path<'_>, errors: &mut Errors) {
    let key = toleration.text("key");
    if !key.is_empty() {
        label_name(key, &path.field("key"), errors);
    }
    let at = path.field("operator");
    match toleration.text("operator") {
        "Exists" if !toleration.text("value").is_empty() => {
            let detail = "must be empty for operator `Exists`";
            errors.invalid(&path.field("value"), toleration.text("value"), detail);
        }
        "Exists" => {}
        "Equal" => {
            let value = toleration.text("value");
            errors.problems(&path.field("value"), value, names::label_value_problems(value));
        }
        "" => errors.required(&at, ""),
        other => errors.not_supported(&at, other, &["Equal", "Exists"]),
    }
    let effect = toleration.text("effect");
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.not_supported(&path.field("effect"), effect, &EFFECTS);
    }
}

fn request(request: &Value, path: &Path<'_>, errors: &mut Errors) {
    label(request.text("name"), &path.field("name"), errors);
    let alternatives = request.list("firstAvailable");
    match (request.part("exactly"), alternatives.is_empty()) {
        (None, true) => errors.required(path, "exactly one of `exactly` or `firstAvailable` is required"),
        (Some(_), false) => errors.invalid(
            path,
            Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        ),
        (Some(exactly), true) => wanted(exactly, &path.field("exactly"), errors),
        (None, false) => {
            let at = path.field("firstAvailable");
            each_unique(
                alternatives,
                ALTERNATIVES_MAX,
                "name",
                &at,
                errors,
                |sub, at, errors| {
                    label(sub.text("name"), &at.field("name"), errors);
                    wanted(sub, at, errors);
                },
            );
        }
    }
}

fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let claim = spec.part("devices").unwrap_or(&NOTHING);
    let path = path.field("devices");
    let at = path.field("requests");
    each_unique(claim.list("requests"), LIST_MAX, "name", &at, errors, request);
    let at = path.field("constraints");
    each(
        claim.list("constraints"),
        LIST_MAX,
        &at,
        errors,
        |constraint, at, errors| {
            request_names(claim, constraint, at, errors);
            if let Some(name) = constraint.text_if_set("matchAttribute") {
                full_name(name, &at.field("matchAttribute"), errors);
            } else if let Some(name) = constraint.text_if_set("distinctAttribute") {
                full_name(name, &at.field("distinctAttribute"), errors);
            } else {
                let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
                errors.required(at, detail);
            }
        },
    );
    let at = path.field("config");
    each(
        claim.list("config"),
        LIST_MAX,
        &at,
        errors,
        |config, at, errors| {
            request_names(claim, config, at, errors);
            configuration(config, false, at, errors);
        },
    );
}

/// A ResourceClaim.
pub(in crate::validation) fn claim(object: &Value, errors: &mut Errors) {
    claim_spec(
        object.part("spec").unwrap_or(&NOTHING),
        &Path::new("spec"),
        errors,
    );
}

/// The spec of a claim cannot be changed.
pub(in crate::validation) fn claim_update(new: &Value, old: &Value, errors: &mut Errors) {
    stays(new, old, "resource.ResourceClaimSpec", errors);
}

/// A ResourceClaimTemplate.
pub(in crate::validation) fn template(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    super::super::pod::template_metadata(spec, &Path::new("spec"), errors);
    claim_spec(
        spec.part("spec").unwrap_or(&NOTHING),
        &Path::new("spec.spec"),
        errors,
    );
}

/// A template cannot be changed.
pub(in crate::validation) fn template_update(new: &Value, old: &Value, errors: &mut Errors) {
    template(new, errors);
    stays(new, old, "resource.ResourceClaimTemplateSpec", errors);
}
