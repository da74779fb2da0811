//! The preconditions of a write: the names, the uid and the version that it gives are those of the path and of the present object.

use http::StatusCode;
use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use shared_json::Value;

use super::Update;
use crate::context::Context;
use crate::message::params::unparsed;
use crate::message::request::Verb;

/// The namespace of path and object must agree.
pub(in crate::rest) fn check_namespace(context: &Context, object: &mut Value) -> Result<(), ApiError> {
    let path = &context.request.namespace;
    if !context.resource.namespaced {
        object.metadata_mut().remove("namespace");
        return Ok(());
    }
    if path.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let given = object.namespace().to_owned();
    if !given.is_empty() && given != *path {
        return Err(ApiError::other_namespace());
    }
    object.set_meta("namespace", path.clone());
    Ok(())
}

/// The names of path and object must agree.
pub(in crate::rest) fn check_name(context: &Context, object: &Value) -> Result<(), ApiError> {
    let (name, wanted) = (object.name(), &context.request.name);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != wanted {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({wanted})"
        )));
    }
    Ok(())
}

/// Whether the change names the version it is based on. An error if it is of another object than the present one.
pub(in crate::rest) fn check_preconditions(
    context: &Context,
    change: &Update<'_>,
    object: &Value,
    old: &Value,
) -> Result<bool, ApiError> {
    // A patch that names another uid is refused by the validation of metadata instead.
    if !change.unconditional && !object.uid().is_empty() && object.uid() != old.uid() {
        return Err(another_uid(context, object.uid(), old.uid()));
    }
    check_version(context, change, object, old)
}

/// Whether the change names the version it is based on. An error if that is not the present one.
pub(in crate::rest) fn check_version(
    context: &Context,
    change: &Update<'_>,
    object: &Value,
    old: &Value,
) -> Result<bool, ApiError> {
    let resource = &context.resource;
    let name = &context.request.name;
    let given = object.resource_version();
    if given.is_empty() || given == "0" {
        // A patch is of the present object, and has its version unless it takes that away.
        let must_say = !change.unconditional || context.request.verb == Verb::Patch;
        if must_say && !resource.strategy.allows_unconditional_update() {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid(
                &resource.group,
                &resource.plural,
                name,
                &[error],
            ));
        }
        return Ok(false);
    }
    if given.parse::<u64>().is_err() {
        let message = unparsed("ParseUint", given);
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    if given != old.resource_version() {
        return Err(ApiError::modified(&resource.group_resource(), name));
    }
    // A patch carries the version of the object it was applied to, which is no condition of the client's.
    Ok(!change.unconditional)
}

/// The conflict of a write that names another uid than that of the object; empty for one that is not there.
pub(in crate::rest) fn another_uid(context: &Context, given: &str, present: &str) -> ApiError {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {given}, UID in object meta: {present}",
        registry_key(context)
    );
    ApiError::conflict(&context.resource.group_resource(), &context.request.name, &why)
}

/// The object's key in the real server's store, which some of its errors quote.
pub(in crate::rest) fn registry_key(context: &Context) -> String {
    let resource = &context.resource;
    let group = if resource.is_custom() {
        format!("{}/", resource.group)
    } else {
        String::new()
    };
    // Some resources are kept by the names that they had first.
    let plural = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            "apiextensions.k8s.io/customresourcedefinitions"
        }
        ("apiregistration.k8s.io", "apiservices") => "apiregistration.k8s.io/apiservices",
        (_, plural) => plural,
    };
    // What a dry run asks never gets as far as the store, which puts the first part before it.
    let root = if context.params.dry_run { "" } else { "/registry" };
    format!("{root}/{group}{plural}/{}", context.key())
}
