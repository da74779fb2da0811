//! What is sent to a subresource that takes a kind of its own: bindings, evictions, requests for tokens, scales.

use shared_json::Value;

use super::context::Context;
use crate::http::payload::Payload;
use crate::meta::ObjectMeta;
use crate::status::ApiError;

/// A kind that a subresource takes, as refusals name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub kind: &'static str,
    /// The package of the real server's own type.
    pub package: &'static str,
}

/// Reads the body. An object that names no kind is taken for one.
///
/// # Errors
/// 400 for another kind, and for another namespace than the path's.
pub(crate) fn read(context: &Context, body: &Payload, taken: Taken) -> Result<Value, ApiError> {
    let object = body.options(&context.content_type)?;
    check(context, &object, taken)?;
    Ok(object)
}

fn check(context: &Context, object: &Value, taken: Taken) -> Result<(), ApiError> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (given, kind) = (text("kind"), taken.kind);
    if !matches!(given, "" | "DeleteOptions") && given != kind {
        let version = text("apiVersion").rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{given} in version \"{version}\" cannot be handled as a {kind}: converting ({version}.{given}) to ({}.{kind}): \
             unknown conversion",
            taken.package
        )));
    }
    let namespace = object.namespace();
    if !namespace.is_empty() && namespace != context.request.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}
