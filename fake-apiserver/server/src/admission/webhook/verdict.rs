//! Applying a webhook's answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use machinery::meta::at;
use machinery::patch::{json as json_patch, json_type};
use machinery::status::ApiError;
use machinery::types;
use shared_json::{Map, Value};

use super::configuration::{Concern, Configured};
use super::review::Review;
use crate::admission::Attributes;
use crate::context::Warnings;
use crate::incoming::kind_check::{SCHEME, readable};
use crate::local_webhook::WebhookKind;
use crate::resources::Resource;
use crate::server::ServerState;

/// The reasons that a `Status` may give.
const REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

/// An answer that allows a write.
#[derive(Debug)]
pub(super) struct Verdict {
    name: String,
    patch: Option<Value>,
}

impl Verdict {
    /// Reads an answer from a webhook of this process. Its warnings go to the client whether it allows or refuses.
    ///
    /// # Errors
    /// The refusal, or 500 for a patch that is none.
    pub(super) fn read(name: &str, review: &Value, warnings: &Warnings) -> Result<Self, ApiError> {
        let response = review.get("response").cloned().unwrap_or_default();
        let list = response.get("warnings").and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        warnings.tell(texts.map(str::to_owned));
        if response.get("allowed").and_then(Value::as_bool) != Some(true) {
            return Err(refusal(name, response.get("status")));
        }
        let patch = match response.get("patch").and_then(Value::as_str) {
            None | Some("") => None,
            Some(encoded) => {
                let parsed = STANDARD
                    .decode(encoded)
                    .ok()
                    .and_then(|bytes| shared_json::from_slice(&bytes).ok());
                Some(
                    parsed
                        .ok_or_else(|| ApiError::internal("json: cannot unmarshal the patch of a webhook"))?,
                )
            }
        };
        Ok(Self {
            name: name.to_owned(),
            patch,
        })
    }

    /// Reads an answer from elsewhere, which may be none at all: that is the outer error, a refusal the inner one.
    pub(super) fn read_review(
        webhook: &Configured,
        kind: WebhookKind,
        answer: &Value,
        asked: &Review,
        warnings: &Warnings,
    ) -> Result<Result<Self, ApiError>, String> {
        let text = |path: &str| at(answer, path).and_then(Value::as_str).unwrap_or_default();
        let uncalled = |why: String| Err(format!("failed to call webhook: {why}"));
        let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
        // What says no kind is read as one that was asked for.
        match (text("apiVersion"), text("kind")) {
            ("", "") | ("admission.k8s.io/v1", "AdmissionReview") => {}
            ("admission.k8s.io/v1beta1", "AdmissionReview") => {
                return uncalled(
                    "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
                        .to_owned(),
                );
            }
            (version, kind) => {
                return uncalled(format!(
                    "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
                ));
            }
        }
        if let Some(allowed) = at(answer, "response.allowed").filter(|allowed| !allowed.is_boolean()) {
            return uncalled(format!(
                "json: cannot unmarshal {} into Go struct field AdmissionResponse.response.allowed of type bool",
                json_type(allowed)
            ));
        }
        if !answer.get("response").is_some_and(Value::is_object) {
            return invalid("webhook response was absent".to_owned());
        }
        if text("response.uid") != asked.uid {
            let given = text("response.uid");
            return invalid(format!("expected response.uid={:?}, got {given:?}", asked.uid));
        }
        let patched = !text("response.patch").is_empty();
        let patch_type = at(answer, "response.patchType").and_then(Value::as_str);
        let wrong = match (kind, patched, patch_type) {
            (WebhookKind::Mutating, true, None) => {
                "webhook returned response.patch but not response.patchType"
            }
            (WebhookKind::Mutating, false, Some(_)) => {
                "webhook returned response.patchType but not response.patch"
            }
            (WebhookKind::Mutating, true, Some("")) => "webhook returned invalid response.patchType of \"\"",
            (WebhookKind::Validating, true, _) => "validating webhook may not return response.patch",
            (WebhookKind::Validating, false, Some(_)) => {
                "validating webhook may not return response.patchType"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return invalid(wrong.to_owned());
        }
        if let Some(other) = patch_type.filter(|patch_type| *patch_type != "JSONPatch") {
            return Err(format!("unsupported patch type {other:?}"));
        }
        let name = &webhook.name;
        Ok(Self::read(name, answer, warnings))
    }

    /// Applies the patch of the verdict to the object.
    ///
    /// # Errors
    /// 500 for a patch that does not apply, or a result that cannot be converted.
    pub(super) async fn settle(
        self,
        state: &ServerState,
        attributes: &mut Attributes,
        kind: WebhookKind,
        concern: &Concern,
    ) -> Result<(), ApiError> {
        let Some(patch) = self.patch.filter(|_| kind == WebhookKind::Mutating) else {
            return Ok(());
        };
        let Some(shown) = concern.object(attributes) else {
            let name = self.name;
            let why = format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            );
            return Err(ApiError::internal(why));
        };
        let mut patched = json_patch::apply(shown, &patch).map_err(ApiError::internal)?;
        still_that_kind(attributes, &concern.resource, &mut patched)?;
        let mut patched = concern.back(state, attributes, patched).await?;
        // The answer is read as a request would be: what the type does not know is dropped, what it leaves out is filled in.
        let own = attributes.is_of_own_kind();
        if own && let Some(schema) = types::builtin(attributes.kind_of(&attributes.resource)) {
            schema
                .check_types(&patched)
                .map_err(|error| ApiError::internal(error.to_string()))?;
            schema.canonicalize(&mut patched);
        }
        if let Some(schema) = attributes.resource.schema().filter(|_| !own) {
            schema.prune(&mut patched);
            if !attributes.resource.is_custom() {
                schema
                    .check_types(&patched)
                    .map_err(|error| ApiError::internal(error.to_string()))?;
            }
            schema.canonicalize(&mut patched);
            schema.default(&mut patched);
        }
        attributes.object = Some(patched);
        Ok(())
    }
}

/// A patched object must be of the same kind; it is if it has no kind.
fn still_that_kind(
    attributes: &Attributes,
    resource: &Resource,
    patched: &mut Value,
) -> Result<(), ApiError> {
    if resource.is_custom() {
        return Ok(());
    }
    let (own_group, version, kind) = attributes.kind_of(resource);
    let api_version = match own_group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    if let Some(map) = patched.as_object_mut() {
        for (field, own) in [("apiVersion", api_version.as_str()), ("kind", kind)] {
            let is_unsaid = |value: &Value| value.is_null() || value.as_str() == Some("");
            if map.get(field).is_none_or(is_unsaid) {
                map.insert(field.to_owned(), Value::from(own));
            }
        }
    }
    readable(patched).map_err(ApiError::internal)?;
    let text = |field: &str| patched.get(field).and_then(Value::as_str).unwrap_or_default();
    if (text("apiVersion"), text("kind")) == (api_version.as_str(), kind) {
        return Ok(());
    }
    let given = (text("apiVersion"), text("kind"));
    let (group, version) = given.0.split_once('/').unwrap_or(("", given.0));
    if types::builtin((group, version, given.1)).is_none() {
        return Err(ApiError::internal(format!(
            "no kind \"{}\" is registered for version \"{}\" in scheme \"{SCHEME}\"",
            given.1, given.0
        )));
    }
    let package = match own_group.split('.').next().unwrap_or_default() {
        "" => "core",
        package => package,
    };
    let short = given.0.rsplit('/').next().unwrap_or_default();
    Err(ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "",
        format!(
            "converting ({short}.{}) to ({package}.{kind}): unknown conversion",
            given.1
        ),
    ))
}

/// The refusal that the client sees: the webhook's own status behind the server's words.
fn refusal(name: &str, status: Option<&Value>) -> ApiError {
    let text = |field: &str| {
        status
            .and_then(|status| status.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let code = status
        .and_then(|status| status.get("code"))
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .and_then(|code| StatusCode::from_u16(code).ok())
        .filter(|code| code.as_u16() >= 400)
        .unwrap_or(StatusCode::BAD_REQUEST);
    let why = match (text("message"), text("reason")) {
        ("", "") => "denied the request without explanation".to_owned(),
        ("", reason) => format!("denied the request: {reason}"),
        (message, _) => format!("denied the request: {message}"),
    };
    let reason = REASONS
        .into_iter()
        .find(|reason| *reason == text("reason"))
        .unwrap_or_default();
    let mut error = ApiError::new(code, reason, format!("admission webhook {name:?} {why}"));
    error.details = status.and_then(|status| status.get("details")).cloned();
    let mut said = Map::new();
    if reason.is_empty() && !text("reason").is_empty() {
        said.insert("reason".to_owned(), Value::from(text("reason")));
    }
    let metadata = status.and_then(|status| status.get("metadata"));
    if let Some(metadata) = metadata.filter(|metadata| metadata.as_object().is_some_and(|it| !it.is_empty()))
    {
        said.insert("metadata".to_owned(), metadata.clone());
    }
    error.said = Some(Box::new(said)).filter(|said| !said.is_empty());
    error
}
