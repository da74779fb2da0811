//! What is made of a webhook's answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::Value;

use super::configuration::Concern;
use super::local::WebhookKind;
use super::review::{Review, from_version, in_version};
use crate::admission::Attributes;
use crate::meta::at;
use crate::patch::json as json_patch;
use crate::status::ApiError;

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
    warnings: Vec<String>,
}

impl Verdict {
    /// Reads an answer of this process.
    ///
    /// # Errors
    /// The refusal, or 500 for a patch that is none.
    pub(super) fn read(name: &str, review: &Value) -> Result<Self, ApiError> {
        let response = review.get("response").cloned().unwrap_or_default();
        let strings = |field: &str| -> Vec<String> {
            let list = response.get(field).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        if response.get("allowed").and_then(Value::as_bool) != Some(true) {
            return Err(refusal(name, response.get("status")));
        }
        let patch = match response.get("patch").and_then(Value::as_str) {
            None | Some("") => None,
            Some(encoded) => {
                let parsed = STANDARD
                    .decode(encoded)
                    .ok()
                    .and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Some(
                    parsed
                        .ok_or_else(|| ApiError::internal("json: cannot unmarshal the patch of a webhook"))?,
                )
            }
        };
        Ok(Self {
            name: name.to_owned(),
            patch,
            warnings: strings("warnings"),
        })
    }

    /// Reads an answer from elsewhere, which may be none at all: that is the outer error, a refusal the inner one.
    pub(super) fn read_review(
        name: &str,
        answer: &Value,
        asked: &Review,
    ) -> Result<Result<Self, ApiError>, String> {
        let text = |path: &str| at(answer, path).and_then(Value::as_str).unwrap_or_default();
        let invalid = |why: String| format!("received invalid webhook response: {why}");
        match (text("apiVersion"), text("kind")) {
            ("admission.k8s.io/v1", "AdmissionReview") => {}
            ("admission.k8s.io/v1beta1", "AdmissionReview") => {
                return Err("failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown \
                            conversion"
                    .to_owned());
            }
            (version, kind) => {
                let (group, version) = version.split_once('/').unwrap_or(("", version));
                return Err(invalid(format!(
                    "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
                )));
            }
        }
        if !answer.get("response").is_some_and(Value::is_object) {
            return Err(invalid("response was absent".to_owned()));
        }
        if text("response.uid") != asked.uid {
            let given = text("response.uid");
            return Err(invalid(format!(
                "expected response.uid={:?}, got {given:?}",
                asked.uid
            )));
        }
        let (patch, kind) = (text("response.patch"), text("response.patchType"));
        if !patch.is_empty() && kind.is_empty() {
            return Err(invalid(
                "response.patch is set, but response.patchType is not".to_owned(),
            ));
        }
        if patch.is_empty() && !kind.is_empty() {
            return Err(invalid(
                "response.patchType is set, but response.patch is not".to_owned(),
            ));
        }
        if !kind.is_empty() && kind != "JSONPatch" {
            return Err(invalid(format!(
                "response.patchType: unsupported patch type {kind:?}"
            )));
        }
        Ok(Self::read(name, answer))
    }

    /// Takes the verdict over, for a webhook that was asked in the request's own version.
    pub(super) fn settle(
        self,
        attributes: &mut Attributes,
        kind: WebhookKind,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let concern = Concern::direct(attributes);
        self.settle_in(attributes, kind, &concern, warnings)
    }

    /// Takes the verdict over: its warnings, and what it changes of the object.
    ///
    /// # Errors
    /// 500 for a patch that does not apply.
    pub(super) fn settle_in(
        self,
        attributes: &mut Attributes,
        kind: WebhookKind,
        concern: &Concern,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        warnings.extend(self.warnings);
        let Some(patch) = self.patch.filter(|_| kind == WebhookKind::Mutating) else {
            return Ok(());
        };
        let Some(object) = attributes.object.take() else {
            let name = self.name;
            let why = format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            );
            return Err(ApiError::internal(why));
        };
        let shown = in_version(attributes, &concern.resource, &object);
        let patched = json_patch::apply(&shown, &patch).map_err(ApiError::internal)?;
        let mut patched = from_version(attributes, &concern.resource, patched);
        // The answer is read as a request would be: what the type does not know is dropped, what it leaves out is filled in.
        if let Some(schema) = attributes.resource.schema() {
            schema.prune(&mut patched);
            schema.canonicalize(&mut patched);
            schema.default(&mut patched);
        }
        attributes.object = Some(patched);
        Ok(())
    }
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
        .filter(|code| code.is_client_error() || code.is_server_error())
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
    error
}
