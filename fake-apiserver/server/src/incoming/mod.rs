//! Bringing a client's object into shape: the right kind, no unknown fields, defaults filled in.

pub(crate) mod kind_check;

use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::go_json;
use machinery::patch::strategic;
use machinery::status::ApiError;
use machinery::types::{self, DecodeError, Schema};
use pod_rules::field_error::FieldError;
use rules::validation::embedded;
use shared_json::Value;

use crate::context::Context;
use crate::message::decode;
use crate::message::params::FieldValidation;
use crate::message::payload::Payload;
use crate::resources::Resource;
use kind_check::{Mismatch, check};

/// How much of a body a refusal quotes, in bytes.
const SUMMARY_BYTES_MAX: usize = 30;

/// The object of a request's body: of the right kind, in shape; and the warnings about it.
///
/// # Errors
/// 400 for a body that is no object of the resource's kind, and for unknown or repeated fields where the client asked for
/// strictness; 415 for an unknown media type.
pub(crate) fn read(context: &Context, body: &Payload) -> Result<(Value, Vec<String>), ApiError> {
    let resource = &context.resource;
    let format = decode::format(&context.content_type)?;
    if format == decode::Format::Protobuf && resource.is_custom() {
        return Err(decode::unsupported());
    }
    let unrecognized = |complaint: &str| unrecognized(&resource.kind, complaint, body);
    let document = body.document(format).map_err(|error| match format {
        decode::Format::Json => {
            unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
        }
        decode::Format::Yaml | decode::Format::Protobuf => unrecognized(&error),
    })?;
    let mut object = document.value;
    if let Err(mismatch) = check(resource, &mut object) {
        return Err(match mismatch {
            Mismatch::Unrecognized(complaint) => unrecognized(&complaint),
            Mismatch::KindMissing => unrecognized(&format!(
                "Object 'Kind' is missing in '{}'",
                String::from_utf8_lossy(body)
            )),
            Mismatch::Group(given) => wrong_group(resource, &given),
            Mismatch::Kind {
                kind,
                version,
                complaint,
            } => {
                // A custom resource is read into an object that takes over what it says of itself.
                let expected = if resource.is_custom() {
                    &kind
                } else {
                    &resource.kind
                };
                ApiError::bad_request(format!(
                    "{kind} in version \"{version}\" cannot be handled as a {expected}: {complaint}"
                ))
            }
            Mismatch::Unversioned(_) => {
                ApiError::bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'")
            }
            Mismatch::CustomKind(kind) => {
                let error = FieldError::invalid("kind", kind.as_str(), format!("must be {}", resource.kind));
                let name = machinery::meta::ObjectMeta::name(&object);
                ApiError::invalid(&resource.group, &kind, name, &[error])
            }
        });
    }
    let strict = context.params.field_validation == FieldValidation::Strict;
    let mut duplicates = document.duplicates;
    if format == decode::Format::Yaml && strict && !duplicates.is_empty() {
        // They are one error of the parser.
        duplicates = vec![format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "))];
    } else if format != decode::Format::Yaml {
        for path in &mut duplicates {
            *path = format!("{DUPLICATE}{path}\"");
        }
    }
    let document = (format == decode::Format::Json).then_some(body);
    let warnings = shape(context, &mut object, duplicates, document)?;
    Ok((object, warnings))
}

/// The refusal of a body that is no object of any kind.
pub(crate) fn unrecognized(kind: &str, complaint: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {complaint} ({})",
        summary(body)
    ))
}

fn wrong_group(resource: &Resource, given: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({})",
        resource.api_version()
    ))
}

/// The complaint about an object without a kind, which goes on with the object.
pub(crate) const KIND_MISSING: &str = "Object 'Kind' is missing in";

/// Checks that a patched object is still of the kind that the path serves. The error is that of Go's decoder.
pub(crate) fn check_patched(resource: &Resource, object: &mut Value) -> Result<(), Patched> {
    check(resource, object).map_err(|mismatch| match mismatch {
        Mismatch::Unrecognized(complaint)
        | Mismatch::Kind { complaint, .. }
        | Mismatch::Unversioned(complaint) => Patched::Undecodable(complaint),
        Mismatch::KindMissing => Patched::Undecodable(KIND_MISSING.to_owned()),
        Mismatch::Group(given) if resource.is_custom() => {
            let detail = format!("must be {}", resource.api_version());
            let error = FieldError::invalid("apiVersion", given, detail);
            let name = machinery::meta::ObjectMeta::name(object);
            Patched::Refused(ApiError::invalid(&resource.group, &resource.kind, name, &[error]))
        }
        Mismatch::Group(given) => Patched::Refused(wrong_group(resource, &given)),
        Mismatch::CustomKind(kind) => {
            let error = FieldError::invalid("kind", kind.as_str(), format!("must be {}", resource.kind));
            let name = machinery::meta::ObjectMeta::name(object);
            Patched::Refused(ApiError::invalid(&resource.group, &kind, name, &[error]))
        }
    })
}

/// Why the result of a patch is no object of the resource.
pub(crate) enum Patched {
    /// The decoder does not take it.
    Undecodable(String),
    /// It is one, but not of this path.
    Refused(ApiError),
}

/// The beginning of a body as refusals quote it: text if it looks like JSON, else hexadecimal.
fn summary(body: &[u8]) -> String {
    let part = body.get(..SUMMARY_BYTES_MAX).unwrap_or(body);
    let more = if part.len() < body.len() { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(part)),
        Some(_) => {
            let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

/// Prunes, checks, normalises and defaults an object of the request's version. Returns warnings, of which `problems`
/// are the first.
///
/// # Errors
/// 400 where the type's decoder fails, and for any problem where the client asked for strictness.
fn shape(
    context: &Context,
    object: &mut Value,
    mut problems: Vec<String>,
    document: Option<&Payload>,
) -> Result<Vec<String>, ApiError> {
    let resource = &context.resource;
    let Some(schema) = resource.schema() else {
        return Ok(Vec::new());
    };
    if problems.is_empty() && !resource.is_custom() && schema.is_settled(object, None) {
        schema.default(object);
        return Ok(Vec::new());
    }
    let mut unknown = schema.prune(object);
    if resource.is_custom() {
        // The metadata of custom resources is read before the rest.
        unknown.sort_by_key(|path| !path.starts_with("metadata."));
    }
    // What is not known is not looked into.
    problems.retain(|problem| {
        !unknown.iter().any(|path| {
            problem
                .strip_prefix("duplicate field \"")
                .is_some_and(|rest| begins(rest, path))
        })
    });
    normalise(context, &schema, object).map_err(|error| {
        let first = document.and_then(|document| schema.first_refused(object, document));
        let error = first.filter(|_| !resource.is_custom()).unwrap_or(error);
        let error = error.with_written_numbers(document.map(|document| &**document));
        ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {error}",
            resource.kind, resource.version, resource.kind
        ))
    })?;
    problems.extend(complaints(&unknown));
    if let Some(document) = document.filter(|_| !resource.is_custom() && problems.len() > 1) {
        in_order(&mut problems, document);
    }
    if !resource.is_custom() {
        problems.truncate(STRICT_ERRORS_MAX);
    }
    match context.params.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(problems),
        FieldValidation::Strict if problems.is_empty() => Ok(problems),
        FieldValidation::Strict => Err(ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
            resource.kind,
            resource.version,
            resource.kind,
            problems.join(", ")
        ))),
    }
}

/// Tells of unknown fields of a document; where the client asked for strictness that is an error.
pub(crate) fn tell_unknown(context: &Context, unknown: &[String], document: &[u8]) -> Result<(), String> {
    let mut complaints = complaints(unknown);
    if !complaints.is_empty() {
        in_order(&mut complaints, document);
    }
    context.warnings.tell(judged(context, complaints)?);
    Ok(())
}

/// The complaints about fields that a type does not declare.
pub(crate) fn complaints(unknown: &[String]) -> Vec<String> {
    unknown.iter().map(|path| format!("{UNKNOWN}{path}\"")).collect()
}

/// The outcome of complaints about fields: warnings, nothing, or an error where the client asked for strictness.
pub(crate) fn judged(context: &Context, complaints: Vec<String>) -> Result<Vec<String>, String> {
    match context.params.field_validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            Err(format!("{STRICT}: {}", complaints.join(", ")))
        }
        FieldValidation::Warn => Ok(complaints),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

/// The beginning of the error where the client asked for strictness.
pub(super) const STRICT: &str = "strict decoding error";

/// The beginnings of complaints about fields, which a path and a quotation mark follow.
const UNKNOWN: &str = "unknown field \"";
const DUPLICATE: &str = "duplicate field \"";

/// How many complaints about fields the real server's decoder of JSON makes.
const STRICT_ERRORS_MAX: usize = 100;

/// Brings complaints about fields into the order in which a document has their causes: an unknown field where it is, a repeated
/// one where it is again. Other complaints stay before them.
pub(crate) fn in_order(complaints: &mut [String], document: &[u8]) {
    let order = go_json::order(document);
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, path) in order.iter().enumerate() {
        places.entry(path).or_default().push(place);
    }
    let place = |path: &str, before: usize| {
        let found = places.get(path).and_then(|places| places.get(before));
        found.map_or(order.len(), |place| place + 1)
    };
    complaints.sort_by_cached_key(|complaint| {
        let path = complaint.strip_suffix('"').unwrap_or(complaint);
        match (path.strip_prefix(UNKNOWN), path.strip_prefix(DUPLICATE)) {
            (Some(path), _) => place(path, 0),
            (None, Some(path)) => place(path, 1),
            (None, None) => 0,
        }
    });
}

/// Whether a quoted path is this one, or of something in it.
fn begins(quoted: &str, path: &str) -> bool {
    quoted
        .strip_prefix(path)
        .is_some_and(|rest| rest.starts_with(['"', '.', '[']))
}

/// Checks the types of a pruned object and fills in defaults.
///
/// # Errors
/// The error of Go's decoder.
pub(crate) fn normalise(
    context: &Context,
    schema: &Arc<Schema>,
    object: &mut Value,
) -> Result<(), DecodeError> {
    decode(context, schema, object, None)?;
    schema.default(object);
    Ok(())
}

/// Checks the types of a pruned object, and brings its values into Go's form. Parts that share memory with `old` are right
/// already.
///
/// # Errors
/// The error of Go's decoder.
pub(crate) fn decode(
    context: &Context,
    schema: &Arc<Schema>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), DecodeError> {
    if context.resource.is_custom() {
        if let Some(metadata) = object.get("metadata") {
            types::object_meta().check_types(metadata)?;
        }
        if context
            .resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.embeds)
        {
            embedded::decode(schema, object)?;
        }
    } else {
        schema.check_changed(object, old)?;
    }
    schema.canonicalize_changed(object, old);
    Ok(())
}

/// The same for the result of an apply. It is not decoded again, so nulls in custom resources are kept for validation. Built-in
/// kinds are read from values, not from text, which truncates numbers that are too large.
///
/// # Errors
/// The error of Go's conversion to an object.
pub(crate) fn normalise_applied(
    context: &Context,
    schema: &Arc<Schema>,
    object: &mut Value,
) -> Result<(), String> {
    if context.resource.is_custom() {
        decode(context, schema, object, None).map_err(|error| error.to_string())?;
        schema.default_only(object);
        return Ok(());
    }
    let Err(error) = normalise(context, schema, object) else {
        return Ok(());
    };
    if strategic::restore::narrow(schema, object) && normalise(context, schema, object).is_ok() {
        return Ok(());
    }
    let complaint = strategic::restore::check(schema, object).err();
    Err(complaint.unwrap_or_else(|| error.to_string()))
}
