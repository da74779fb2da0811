//! What a client sent, brought into shape: the right kind, nothing unknown, defaults filled in.

use std::sync::Arc;

use serde_json::Value;

use super::context::Context;
use crate::http::params::FieldValidation;
use crate::resources::Resource;
use crate::status::ApiError;
use crate::types::{self, DecodeError, Schema};

/// Checks that `object` is of the kind that the path serves; a missing kind or version is filled in.
pub(crate) fn check_kind(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let Some(map) = object.as_object_mut() else {
        return Err(ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            type_name(object)
        )));
    };
    let api_version = resource.api_version();
    let given = |field: &str| {
        map.get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (given_version, given_kind) = (given("apiVersion"), given("kind"));
    if resource.is_custom() {
        if given_kind.is_empty() {
            return Err(ApiError::bad_request(
                "Object 'Kind' is missing in 'unstructured object has no kind'",
            ));
        }
        if given_kind != resource.kind {
            return Err(ApiError::bad_request(format!(
                "{} in the URL does not match the kind of the object ({given_kind})",
                resource.kind
            )));
        }
    } else if !given_kind.is_empty() && given_kind != resource.kind {
        return Err(ApiError::bad_request(format!(
            "{given_kind} in version \"{}\" cannot be handled as a {}: no kind \"{given_kind}\" is registered for version \"{}\"",
            last(&given_version),
            resource.kind,
            given_version
        )));
    }
    if !given_version.is_empty() && given_version != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    map.insert("apiVersion".to_owned(), Value::from(api_version));
    map.insert("kind".to_owned(), Value::from(resource.kind.clone()));
    Ok(())
}

fn last(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        _ => "null",
    }
}

/// Prunes, checks, normalises and defaults an object of the request's version. Returns warnings.
///
/// # Errors
/// 400 for what the type's decoder would refuse, and for unknown fields where the client asked for strictness.
pub(crate) fn shape(context: &Context, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let Some(schema) = context.resource.schema() else {
        return Ok(Vec::new());
    };
    let unknown = schema.prune(object);
    let warnings = unknown_fields(context, unknown)?;
    normalise(context, &schema, object)?;
    Ok(warnings)
}

/// Checks the types of a pruned object and fills in what it does not say.
pub(crate) fn normalise(context: &Context, schema: &Arc<Schema>, object: &mut Value) -> Result<(), ApiError> {
    let resource = &context.resource;
    let refuse = |error: DecodeError| {
        ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {error}",
            resource.kind, resource.version, resource.kind
        ))
    };
    if resource.is_custom() {
        if let Some(metadata) = object.get("metadata") {
            types::object_meta().check_types(metadata).map_err(refuse)?;
        }
    } else {
        schema.check_types(object).map_err(refuse)?;
    }
    schema.canonicalize(object);
    schema.default(object);
    Ok(())
}

fn unknown_fields(context: &Context, unknown: Vec<String>) -> Result<Vec<String>, ApiError> {
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match context.params.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(texts),
        FieldValidation::Strict => {
            let resource = &context.resource;
            let text = format!("strict decoding error: {}", texts.join(", "));
            Err(ApiError::bad_request(if resource.is_custom() {
                text
            } else {
                format!(
                    "{} in version \"{}\" cannot be handled as a {}: {text}",
                    resource.kind, resource.version, resource.kind
                )
            }))
        }
    }
}
