//! The options of writes, checked once it is known which verb they are for.

use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use shared_json::Value;

use crate::message::params::{FieldValidation, Params};
use crate::message::request::Verb;

const MANAGER_BYTES_MAX: usize = 128;

/// Checks the options of a write and fills in their defaults. `apply` is whether it is a server-side apply.
///
/// # Errors
/// 422, naming the kind of options.
pub(crate) fn check(params: &mut Params, verb: Verb, apply: bool) -> Result<(), ApiError> {
    let kind = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // A number that is none matters only to who would read it.
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            return params.wrong_list_number.take().map_or(Ok(()), Err);
        }
        Verb::Get | Verb::Delete => return Ok(()),
    };
    let mut errors = Vec::new();
    if verb == Verb::Patch && apply && params.field_manager.is_empty() {
        errors.push(FieldError::required(
            "fieldManager",
            "is required for apply patch",
        ));
    }
    if verb == Verb::Patch && !apply && params.force.is_some() {
        errors.push(FieldError::forbidden(
            "force",
            "may not be specified for non-apply patch",
        ));
    }
    errors.extend(manager(&params.field_manager));
    errors.extend(dry_run(&params.dry_run_given));
    match params.field_validation_given.as_str() {
        "" | "Warn" => params.field_validation = FieldValidation::Warn,
        "Ignore" => params.field_validation = FieldValidation::Ignore,
        "Strict" => params.field_validation = FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported("fieldValidation", other, &supported));
        }
    }
    if !errors.is_empty() {
        return Err(invalid(kind, &errors));
    }
    params.dry_run = !params.dry_run_given.is_empty();
    Ok(())
}

/// A refusal of options.
pub(crate) fn invalid(kind: &str, errors: &[FieldError]) -> ApiError {
    ApiError::invalid("meta.k8s.io", kind, "", errors)
}

/// The error in `dryRun`: its one valid value is `All`.
pub(crate) fn dry_run(given: &[String]) -> Option<FieldError> {
    let bad = given.iter().any(|value| value != "All");
    bad.then(|| FieldError::not_supported("dryRun", Value::from(given.to_vec()), &["All"]))
}

fn manager(name: &str) -> Option<FieldError> {
    if name.len() > MANAGER_BYTES_MAX {
        return Some(FieldError::too_long("fieldManager", MANAGER_BYTES_MAX));
    }
    let (position, bad) = name.char_indices().find(|(_, c)| c.is_control())?;
    let detail = format!(
        "invalid character U+{:04X} (at position {position})",
        u32::from(bad)
    );
    Some(FieldError::invalid("fieldManager", name, detail))
}

/// Checks the options of a list or a watch.
///
/// # Errors
/// 422.
pub(crate) fn check_list(params: &Params, watch: bool) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let matching = params.resource_version_match.as_str();
    let forbidden = |detail: &str| FieldError::forbidden("resourceVersionMatch", detail);
    // A watch from whatever there is streams that first, as if it had asked for it.
    let streams = matching.is_empty()
        && params.send_initial_events.is_none()
        && matches!(params.resource_version.as_str(), "" | "0");
    if watch && params.send_initial_events.is_some() && matching != "NotOlderThan" {
        errors.push(forbidden(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if watch && !matching.is_empty() && params.send_initial_events.is_none() {
        errors.push(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    if watch && !matching.is_empty() && matching != "NotOlderThan" {
        errors.push(FieldError::not_supported(
            "resourceVersionMatch",
            matching,
            &["NotOlderThan"],
        ));
    }
    if watch && !params.continue_token.is_empty() && (streams || !matching.is_empty()) {
        errors.push(forbidden(
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    if !watch && !matching.is_empty() {
        if params.resource_version.is_empty() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !params.continue_token.is_empty() {
            errors.push(forbidden(
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                matching,
                &["Exact", "NotOlderThan", ""],
            ));
        }
        if matching == "Exact" && params.resource_version == "0" {
            errors.push(forbidden(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if !watch && params.send_initial_events.is_some() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(invalid("ListOptions", &errors))
    }
}
