//! Request bodies: JSON or YAML to a value.

use http::StatusCode;
use serde_json::Value;

use crate::status::ApiError;

/// The largest body that is read: 3 MiB, as the real server.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Decodes a body by its content type. An empty body is `Null`.
///
/// # Errors
/// 400 for what does not parse, 415 for a type that is not read here.
pub(crate) fn decode(content_type: &str, body: &[u8]) -> Result<Value, ApiError> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "*/*" | "application/json" => json(body),
        "application/yaml" | "application/vnd.kubernetes.protobuf+yaml" => yaml(body),
        other => Err(unsupported(other)),
    }
}

/// Decodes JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Decodes YAML, of which JSON is a part.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error converting YAML to JSON: {error}")))
}

pub(crate) fn unsupported(media_type: &str) -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml: {media_type}"
        ),
    )
}
