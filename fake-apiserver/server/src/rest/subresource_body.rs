//! The body of a subresource that takes a kind of its own: bindings, evictions, requests for tokens, scales.

use machinery::meta::ObjectMeta;
use machinery::status::ApiError;
use machinery::types;
use shared_json::Value;

use crate::context::Context;
use crate::incoming::{self, kind_check};
use crate::message::payload::Payload;

/// A kind that a subresource takes, as refusals name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub kind: &'static str,
    /// The package of the real server's own type.
    pub package: &'static str,
    /// The group of its version 1.
    pub group: &'static str,
}

impl Taken {
    fn api_version(self) -> String {
        match self.group {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        }
    }
}

/// Reads the body. An object that names no kind is taken for one.
///
/// # Errors
/// 400 for another kind, for another namespace than the path's, and for unknown fields where the client asked for strictness.
pub(crate) fn read(context: &Context, body: &Payload, taken: Taken) -> Result<Value, ApiError> {
    let object = body.options(&context.content_type)?;
    take(context, object, body, taken)
}

/// The same of a body that has been read.
pub(super) fn take(
    context: &Context,
    mut object: Value,
    body: &Payload,
    taken: Taken,
) -> Result<Value, ApiError> {
    if let Err(complaint) = kind_check::readable(&object) {
        return Err(incoming::unrecognized(taken.kind, &complaint, body));
    }
    check(&object, taken)?;
    let kind = taken.kind;
    let refused = |complaint: String| {
        ApiError::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: {complaint}"
        ))
    };
    if let Some(schema) = types::builtin((taken.group, "v1", taken.kind)) {
        let unknown = schema.prune(&mut object);
        schema
            .check_types(&object)
            .map_err(|error| refused(error.with_written_numbers(Some(body)).to_string()))?;
        incoming::tell_unknown(context, &unknown, body).map_err(refused)?;
    }
    if let Some(map) = object.as_object_mut() {
        let version = taken.api_version();
        // What says nothing of its kind is taken for one.
        for (field, value) in [("apiVersion", version), ("kind", taken.kind.to_owned())] {
            if map.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                map.insert(field.to_owned(), Value::from(value));
            }
        }
    }
    let namespace = object.namespace();
    if !namespace.is_empty() && namespace != context.request.namespace {
        return Err(ApiError::other_namespace());
    }
    Ok(object)
}

fn check(object: &Value, taken: Taken) -> Result<(), ApiError> {
    let own_version = taken.api_version();
    let text = |field: &str, default: &str| match object.get(field).and_then(Value::as_str) {
        None | Some("") => default.to_owned(),
        Some(text) => text.to_owned(),
    };
    let (api_version, given) = (text("apiVersion", &own_version), text("kind", taken.kind));
    let kind = taken.kind;
    // Scales and evictions have been of other versions, too.
    let is_known = match kind {
        "Scale" => true,
        "Eviction" => OF_EVICTIONS.contains(&api_version.as_str()),
        _ => api_version == own_version,
    };
    if given == "DeleteOptions" || given == kind && is_known {
        return Ok(());
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let complaint = match kind_check::is_registered(&api_version, &given) {
        true => format!(
            "converting ({version}.{given}) to ({}.{kind}): unknown conversion",
            taken.package
        ),
        false => kind_check::unregistered(&api_version, &given),
    };
    Err(ApiError::bad_request(format!(
        "{given} in version \"{version}\" cannot be handled as a {kind}: {complaint}"
    )))
}

const OF_EVICTIONS: [&str; 2] = ["policy/v1", "policy/v1beta1"];
