//! Patch, in its four kinds.

use http::StatusCode;
use serde_json::Value;

use super::context::{Answer, Context};
use super::create::{check_namespace, create_shaped};
use super::incoming;
use super::ownership::{Ownership, with_operation};
use super::update::{Update, update};
use crate::field_error::FieldError;
use crate::http::decode;
use crate::meta::ObjectMeta;
use crate::patch::apply::{self as server_side, ApplyError};
use crate::patch::{PatchError, json, merge, strategic};
use crate::status::ApiError;

/// The kinds of patches, by media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// The kind of a content type.
    ///
    /// # Errors
    /// 415.
    pub(crate) fn of(content_type: &str) -> Result<Self, ApiError> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\
                     {}{other}",
                    ", application/strategic-merge-patch+json: "
                ),
            )),
        }
    }
}

/// Patches the object that the path names; apply creates it if it is missing.
pub(crate) async fn patch(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let kind = PatchKind::of(&context.content_type)?;
    if kind == PatchKind::Strategic && context.resource.is_custom() {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        ));
    }
    if kind == PatchKind::Apply {
        return apply(context, decode::yaml(body)?).await;
    }
    if context.params.force {
        return Err(ApiError::bad_request(
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        ));
    }
    let document = decode::json(body)?;
    let schema = context.resource.schema();
    let make = |old: &Value| {
        let patched = match (kind, &schema) {
            (PatchKind::Json, _) => json::apply(old, &document),
            (PatchKind::Strategic, Some(schema)) => strategic::apply(schema, old, &document),
            _ => merge::apply(old, &document),
        };
        let mut object = patched.map_err(|error| refused(context, error))?;
        incoming::check_kind(&context.resource, &mut object)?;
        let warnings = incoming::shape(context, &mut object)?;
        check_name(context, &object)?;
        Ok((object, warnings))
    };
    update(
        context,
        &Update {
            make: &make,
            ownership: Ownership::Tracked,
            unconditional: true,
        },
    )
    .await
}

fn check_name(context: &Context, object: &Value) -> Result<(), ApiError> {
    if object.name() == context.request.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({}) does not match the name on the URL ({})",
        object.name(),
        context.request.name
    )))
}

fn refused(context: &Context, error: PatchError) -> ApiError {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::BAD_REQUEST);
    let resource = &context.resource;
    match &error {
        PatchError::Malformed(message) => ApiError::bad_request(message.clone()),
        PatchError::DoesNotApply(_) => {
            let mut out = ApiError::new(code, "Invalid", PatchError::HIDDEN);
            out.details = Some(serde_json::json!({}));
            out
        }
        PatchError::Invalid { patch, detail } => {
            let field = FieldError::invalid("patch", Value::from(patch.clone()), detail.clone());
            ApiError::invalid(&resource.group, &resource.kind, &context.request.name, &[field])
        }
        PatchError::TooLarge(message) => ApiError::new(code, "RequestEntityTooLarge", message.clone()),
        PatchError::Internal(message) => ApiError::new(code, "", message.clone()),
    }
}

fn apply_failed(error: &ApplyError) -> ApiError {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match error {
        ApplyError::Conflict(_) => "Conflict",
        ApplyError::BadRequest(_) => "BadRequest",
        ApplyError::Typed(_) => "",
    };
    let mut out = ApiError::new(code, reason, error.to_string());
    let causes = error.causes();
    if !causes.is_empty() {
        out.details = Some(serde_json::json!({"causes": causes}));
    }
    out
}

async fn apply(context: &Context, mut applied: Value) -> Result<Answer, ApiError> {
    if context.params.field_manager.is_empty() {
        return Err(ApiError::bad_request(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ));
    }
    incoming::check_kind(&context.resource, &mut applied)?;
    if applied.name().is_empty() {
        applied.set_meta("name", context.request.name.clone());
    }
    check_name(context, &applied)?;
    check_namespace(context, &mut applied)?;
    let schema = context
        .resource
        .schema()
        .ok_or_else(ApiError::method_not_allowed)?;
    let merged = |live: Option<&Value>| {
        with_operation(context, |operation| {
            server_side::apply(&schema, live, &applied, context.params.force, operation)
        })
        .map_err(|error| apply_failed(&error))
    };
    if context
        .state()
        .store
        .get(context.table(), &context.key())
        .is_none()
    {
        if !context.request.subresource.is_empty() {
            return Err(ApiError::not_found(
                &context.resource.group_resource(),
                &context.request.name,
            ));
        }
        if !applied.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                applied.uid()
            );
            return Err(ApiError::conflict(
                &context.resource.group_resource(),
                &context.request.name,
                &why,
            ));
        }
        let mut object = merged(None)?;
        incoming::normalise(context, &schema, &mut object)?;
        return create_shaped(context, object, Ownership::Applied).await;
    }
    let make = |old: &Value| {
        let mut object = merged(Some(old))?;
        incoming::normalise(context, &schema, &mut object)?;
        Ok((object, Vec::new()))
    };
    update(
        context,
        &Update {
            make: &make,
            ownership: Ownership::Applied,
            unconditional: true,
        },
    )
    .await
}
