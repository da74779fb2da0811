//! Patch, in its four kinds.

use http::StatusCode;
use machinery::go_json;
use machinery::meta::ObjectMeta;
use machinery::patch::apply::{self as server_side, ApplyError};
use machinery::patch::{PatchError, go_json, go_print, json as json_patch, json_type, merge, strategic};
use machinery::status::ApiError;
use machinery::types::Schema;
use pod_rules::field_error::FieldError;
use shared_json::Value;

use super::create::create_shaped;
use super::ownership::{Ownership, with_operation};
use super::update::{is_service_status, update};
use super::write::{Update, check_name, check_namespace};
use crate::context::{Answer, Context};
use crate::incoming::{self, Patched};
use crate::message::decode;
use crate::message::params::FieldValidation;
use crate::message::payload::Payload;

/// The kinds of patches, by media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// The kind of a content type. Custom resources have no strategic merge.
    ///
    /// # Errors
    /// 415.
    pub(crate) fn of(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        match content_type.split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ if custom => Err(unknown_format(&[
                "json-patch+json",
                "merge-patch+json",
                "apply-patch+yaml",
            ])),
            // The routes of built-in resources take a list, as long as one of it is known.
            _ if content_type.split(',').any(is_routed) => Err(unknown_format(&ROUTED)),
            // Anything else they refuse before anybody looks at it.
            _ => {
                let mut error = ApiError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "UnsupportedMediaType",
                    "415: Unsupported Media Type",
                );
                error.details = Some(shared_json::json!({}));
                Err(error)
            }
        }
    }
}

/// The media types of patches on the routes of built-in resources, each of `application/`.
const ROUTED: [&str; 4] = [
    "json-patch+json",
    "merge-patch+json",
    "strategic-merge-patch+json",
    "apply-patch+yaml",
];

fn is_routed(content_type: &str) -> bool {
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    content_type
        .strip_prefix("application/")
        .is_some_and(|kind| ROUTED.contains(&kind))
}

fn unknown_format(accepted: &[&str]) -> ApiError {
    let accepted: Vec<String> = accepted
        .iter()
        .map(|kind| format!("application/{kind}"))
        .collect();
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        ),
    )
}

/// Patches the object that the path names; apply creates it if it is missing.
pub(crate) async fn patch(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let kind = PatchKind::of(&context.content_type, context.resource.is_custom())?;
    if kind == PatchKind::Apply {
        return apply(context, body).await;
    }
    // What is not there is missed before anybody reads the patch.
    context.existing()?;
    let (document, repeated) = read(context, kind, body)?;
    let is_array = document.is_array() && is_read_blindly(context, kind);
    let schema = context.resource.schema();
    let apply = |old: &Value| {
        let patched = match (kind, &schema) {
            (PatchKind::Json, _) => json_patch::apply(old, &document),
            // An array is taken for what there is to be.
            (PatchKind::Merge, _) if is_array => Ok(merge::without_nulls(&document)),
            (PatchKind::Strategic, Some(schema)) => strategic::apply(schema, old, &document),
            _ => merge::apply(old, &document),
        };
        patched.map_err(|error| refused(&error))
    };
    let make = |old: &Value| {
        let mut object = apply(old)?;
        match shape_patched(context, kind, (old, &document), &mut object, &repeated) {
            Ok(warnings) => context.warnings.tell(warnings),
            Err(Patched::Refused(error)) => return Err(error),
            // The refusal shows what the patch made before it was brought into shape: made anew, as hardly any is refused.
            Err(Patched::Undecodable(complaint))
                if kind == PatchKind::Strategic && complaint.starts_with(incoming::STRICT) =>
            {
                return Err(refused_strictly(old, &document, complaint));
            }
            Err(Patched::Undecodable(complaint)) => {
                let patched = apply(old)?;
                if context.resource.is_custom() && complaint != incoming::KIND_MISSING {
                    // Custom resources are written by the names of their fields.
                    let error = FieldError::invalid("patch", patched.to_string(), complaint);
                    return Err(ApiError::invalid("", "", "", &[error]));
                }
                let touched = merge::touched(kind == PatchKind::Json, &document);
                let schema = schema.as_deref();
                return Err(undecodable_patch(kind, (&touched, schema), &patched, &complaint));
            }
        }
        check_namespace(context, &mut object)?;
        check_name(context, &object)?;
        Ok(object)
    };
    update(
        context,
        &Update {
            make: &make,
            sent: &|old| old.and_then(|old| apply(old).ok()),
            ownership: Ownership::Tracked,
            unconditional: true,
            judged: false,
        },
    )
    .await
}

/// Reads a patch that is no apply, and the complaints about repeated fields in it.
pub(super) fn read(
    context: &Context,
    kind: PatchKind,
    body: &Payload,
) -> Result<(Value, Vec<String>), ApiError> {
    let blind = is_read_blindly(context, kind);
    let unchecked = kind == PatchKind::Json && context.params.field_validation == FieldValidation::Ignore;
    let go_json::Document { value, duplicates } = body.untyped().map_err(|error| match kind {
        _ if blind => ApiError::bad_request(NO_PATCH),
        _ if unchecked => ApiError::bad_request(error),
        _ => malformed(kind, &error),
    })?;
    let nothing = value.is_null() || blind && !value.is_object() && !value.is_array();
    if kind == PatchKind::Merge && nothing {
        return Err(ApiError::bad_request(NO_PATCH));
    }
    if unchecked {
        return Ok((
            json_patch::unchecked(value).map_err(|error| refused(&error))?,
            Vec::new(),
        ));
    }
    let mut repeated = repeated(kind, &duplicates);
    if kind == PatchKind::Json {
        repeated.extend(unknown_operands(&value));
    }
    Ok((value, repeated))
}

/// Merge patches are checked for repeated fields before the merge, unless the client ignores such fields.
fn is_read_blindly(context: &Context, kind: PatchKind) -> bool {
    kind == PatchKind::Merge && context.params.field_validation == FieldValidation::Ignore
}

const NO_PATCH: &str = "Invalid JSON Patch";

/// The complaints about fields that a patch gives more than once.
fn repeated(kind: PatchKind, paths: &[String]) -> Vec<String> {
    let about = match kind {
        PatchKind::Json => "json patch duplicate field",
        PatchKind::Merge => "duplicate field",
        PatchKind::Strategic | PatchKind::Apply => return Vec::new(),
    };
    paths.iter().map(|path| format!("{about} \"{path}\"")).collect()
}

/// The complaints about unknown members of operations.
fn unknown_operands(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let fields = operations.flat_map(|(index, operation)| {
        let fields = operation.as_object().into_iter().flat_map(shared_json::Map::keys);
        fields.map(move |field| (index, field))
    });
    fields
        .filter(|(_, field)| !matches!(field.as_str(), "op" | "path" | "from" | "value"))
        .map(|(index, field)| format!("json patch unknown field \"[{index}].{field}\""))
        .collect()
}

/// A patch that is not JSON.
fn malformed(kind: PatchKind, error: &str) -> ApiError {
    match kind {
        PatchKind::Strategic => ApiError::bad_request(error),
        PatchKind::Json | PatchKind::Merge | PatchKind::Apply => {
            ApiError::bad_request(format!("error decoding patch: {error}"))
        }
    }
}

/// The refusal of a strategic patch where the client asked for strictness: it shows the rest of the patch after the merge.
pub(super) fn refused_strictly(old: &Value, patch: &Value, complaint: String) -> ApiError {
    let left = go_print(&strategic::used(Some(old), patch));
    ApiError::invalid("", "", "", &[FieldError::invalid("patch", left, complaint)])
}

pub(super) fn undecodable_patch(
    kind: PatchKind,
    (touched, schema): (&Value, Option<&Schema>),
    patched: &Value,
    complaint: &str,
) -> ApiError {
    let (value, complaint) = match kind {
        PatchKind::Strategic => (go_print(patched), of_value(complaint)),
        PatchKind::Json | PatchKind::Merge | PatchKind::Apply => {
            let value = go_json(patched, touched, schema);
            let complaint = match complaint {
                incoming::KIND_MISSING => format!("{complaint} '{value}'"),
                other => other.to_owned(),
            };
            (value, complaint)
        }
    };
    ApiError::invalid("", "", "", &[FieldError::invalid("patch", value, complaint)])
}

/// The complaint as of a decoder that reads values instead of text.
fn of_value(complaint: &str) -> String {
    if complaint.starts_with("illegal base64") {
        return format!("error decoding from json: {complaint}");
    }
    complaint.to_owned()
}

/// The configuration that is applied.
pub(super) fn configuration(body: &[u8]) -> Result<go_json::Document, ApiError> {
    let refuse = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let mut document = decode::first_yaml(body).map_err(|error| refuse(&error))?;
    match &document.value {
        Value::Null => document.value = Value::Object(shared_json::Map::new()),
        Value::Object(_) => {}
        other => {
            return Err(refuse(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
                 map[string]interface {{}}",
                json_type(other)
            )));
        }
    }
    Ok(document)
}

/// Brings the result of a patch into shape, as a decoder would that reads it anew. Returns warnings.
///
/// `repeated` are complaints about the patch itself.
fn shape_patched(
    context: &Context,
    kind: PatchKind,
    (old, patch): (&Value, &Value),
    object: &mut Value,
    repeated: &[String],
) -> Result<Vec<String>, Patched> {
    if reads_nothing(context, kind, object) {
        let unknown = forget_all(object, context.resource.is_custom());
        context.warnings.tell(judged(context, &unknown)?);
    }
    if kind == PatchKind::Strategic
        && let Some(map) = object.as_object_mut()
    {
        // It is read into an object of the kind, whatever it says that it is.
        map.insert(
            "apiVersion".to_owned(),
            Value::from(context.resource.api_version()),
        );
        map.insert("kind".to_owned(), Value::from(context.resource.kind.clone()));
    }
    incoming::check_patched(&context.resource, object)?;
    let Some(schema) = context.resource.schema() else {
        return Ok(Vec::new());
    };
    let mut unknown = repeated.to_vec();
    // What a patch has left as it was need not be looked at again, unless its type may have changed since. Most patches are of a
    // status, beside a specification that is several times as large.
    let old = (!context.resource.is_custom()).then_some(old);
    if old.is_some() && repeated.is_empty() && schema.is_settled(object, old) {
        schema.default_changed(object, old);
        return Ok(Vec::new());
    }
    let whole = object.clone();
    let pruned = schema.prune_changed(object, old);
    let mut pruned = incoming::complaints(&pruned);
    if old.is_some() && pruned.len() > 1 && matches!(kind, PatchKind::Json | PatchKind::Merge) {
        // They are read from the text that the patch makes.
        let touched = merge::touched(kind == PatchKind::Json, patch);
        let text = go_json(&whole, &touched, Some(&schema));
        incoming::in_order(&mut pruned, text.as_bytes());
    }
    unknown.extend(pruned);
    let decoded = incoming::decode(context, &schema, object, old);
    decoded.map_err(|error| Patched::Undecodable(error.to_string()))?;
    schema.default_changed(object, old);
    judged(context, &unknown)
}

/// The outcome of unknown fields: warnings, or an error.
fn judged(context: &Context, unknown: &[String]) -> Result<Vec<String>, Patched> {
    incoming::judged(context, unknown.to_vec()).map_err(Patched::Undecodable)
}

/// Whether the patched object is read by a type that knows none of its fields: the internal one of a built-in kind where the
/// version is gone, and the missing one of another version of a custom resource.
fn reads_nothing(context: &Context, kind: PatchKind, object: &Value) -> bool {
    let resource = &context.resource;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, given) = (text("apiVersion"), text("kind"));
    if resource.is_custom() {
        let other = version
            .split_once('/')
            .is_some_and(|(group, version)| group == resource.group && version != resource.version);
        return other && given == resource.kind;
    }
    kind != PatchKind::Strategic
        && object
            .get("apiVersion")
            .is_none_or(|given| given.is_null() || given.as_str() == Some(""))
}

/// Drops all fields but those that every object has, and names them.
fn forget_all(object: &mut Value, is_custom: bool) -> Vec<String> {
    let known = |name: &str| matches!(name, "apiVersion" | "kind") || is_custom && name == "metadata";
    let Some(map) = object.as_object_mut() else {
        return Vec::new();
    };
    let unknown = map
        .keys()
        .filter(|name| !known(name))
        .map(|name| format!("unknown field \"{name}\""))
        .collect();
    map.retain(|name, _| known(name));
    unknown
}

pub(super) fn refused(error: &PatchError) -> ApiError {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::BAD_REQUEST);
    match error {
        PatchError::Malformed(message) => ApiError::bad_request(message.clone()),
        PatchError::DoesNotApply(_) => {
            let mut out = ApiError::new(code, "Invalid", PatchError::HIDDEN);
            out.details = Some(shared_json::json!({}));
            out
        }
        PatchError::Invalid { patch, detail } => ApiError::invalid(
            "",
            "",
            "",
            &[FieldError::invalid("patch", patch.as_str(), of_value(detail))],
        ),
        PatchError::TooLarge(message) => ApiError::new(code, "RequestEntityTooLarge", message.clone()),
        PatchError::Internal(message) => ApiError::new(code, "", message.clone()),
    }
}

pub(super) fn apply_failed(error: &ApplyError) -> ApiError {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match error {
        ApplyError::Conflict(_) => "Conflict",
        ApplyError::BadRequest(_) => "BadRequest",
        ApplyError::Typed(_) => "",
    };
    let mut out = ApiError::new(code, reason, error.to_string());
    let causes = error.causes();
    if !causes.is_empty() {
        out.details = Some(shared_json::json!({"causes": causes}));
    }
    out
}

/// The merged object has the right fields, and one of them has a value of the wrong type.
pub(super) fn unconvertible(applied: &Value, complaint: &str) -> ApiError {
    let text = |path: &str| applied.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let of = kind_of(text("/apiVersion"), text("/kind"));
    let message = format!(
        "failed to convert new object ({}/{}; {of}) to proper version: unable to convert unstructured object to {of}: {}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        of_value(complaint)
    );
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` of the core group.
fn kind_of(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Only the kind and version of the path can be applied there.
pub(super) fn check_type(applied: &Value, (version, kind): (&str, &str)) -> Result<(), ApiError> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    if given_version == version && given_kind == kind {
        return Ok(());
    }
    let given = match given_version.matches('/').count() {
        0 if given_version.is_empty() => format!("/, Kind={given_kind}"),
        0 | 1 => kind_of(given_version, given_kind),
        // What is no version says nothing of the kind either.
        _ => "/, Kind=".to_owned(),
    };
    Err(ApiError::bad_request(format!("invalid object type: {given}")))
}

/// The outcome of keys that the configuration has more than once: found when everything else is right.
pub(super) fn check_repeated(context: &Context, repeated: &[String]) -> Result<(), ApiError> {
    match context.params.field_validation {
        FieldValidation::Strict if !repeated.is_empty() => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            repeated.join("\n  ")
        ))),
        FieldValidation::Warn => {
            context.warnings.tell(repeated.iter().cloned());
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}

/// Whether an apply to the status creates a missing object: that of services and of these policies does.
fn is_made_by_status(context: &Context) -> bool {
    let table = context.table().resource.as_str();
    match context.request.subresource.as_str() {
        "" => true,
        "status" => {
            is_service_status(context)
                || !context.resource.is_custom() && table == "validatingadmissionpolicies"
        }
        _ => false,
    }
}

async fn apply(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let resource = &context.resource;
    let is_new = context
        .state()
        .store
        .get(context.table(), &context.key())
        .is_none();
    if is_new && !is_made_by_status(context) {
        return Err(ApiError::not_found(
            &resource.group_resource(),
            &context.request.name,
        ));
    }
    let go_json::Document {
        value: mut applied,
        duplicates: repeated,
    } = configuration(body)?;
    check_type(&applied, (&resource.api_version(), &resource.kind))?;
    incoming::check_patched(resource, &mut applied).map_err(|error| match error {
        Patched::Undecodable(complaint) => ApiError::bad_request(complaint),
        Patched::Refused(error) => error,
    })?;
    let schema = resource.schema().ok_or_else(ApiError::method_not_allowed)?;
    let merge = |live: Option<&Value>| {
        with_operation(context, |operation| {
            server_side::apply(
                &schema,
                live,
                &applied,
                context.params.force.unwrap_or(false),
                operation,
            )
        })
        .map_err(|error| apply_failed(&error))
    };
    let merged = |live: Option<&Value>| {
        let mut object = merge(live)?;
        incoming::normalise_applied(context, &schema, &mut object)
            .map_err(|complaint| unconvertible(&applied, &complaint))?;
        check_repeated(context, &repeated)?;
        check_namespace(context, &mut object)?;
        check_name(context, &object)?;
        if live.is_none() {
            // A version says nothing of an object that is not there.
            object.metadata_mut().remove("resourceVersion");
        }
        Ok(object)
    };
    if is_new {
        if !applied.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                applied.uid()
            );
            return Err(ApiError::conflict(
                &resource.group_resource(),
                &context.request.name,
                &why,
            ));
        }
        crate::authz::check_create(context)?;
        return create_shaped(context, merged(None)?, Ownership::Applied, &|live| {
            merge(live).ok()
        })
        .await;
    }
    let make = |old: &Value| merged(Some(old));
    update(
        context,
        &Update {
            make: &make,
            sent: &|live| merge(live).ok(),
            ownership: Ownership::Applied,
            unconditional: true,
            judged: false,
        },
    )
    .await
}
