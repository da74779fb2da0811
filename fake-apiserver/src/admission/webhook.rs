//! Webhooks that are registered in process: no socket, the same `AdmissionReview`.

use std::sync::Arc;

use base64::Engine as _;
use futures::future::BoxFuture;
use http::StatusCode;
use serde_json::{Value, json};

use super::Attributes;
use crate::server::Server;
use crate::status::ApiError;

/// Answers an `AdmissionReview` (`admission.k8s.io/v1`) with its response filled in. The client reaches the server
/// that asks.
pub type WebhookHandler = Arc<dyn Fn(kube::Client, Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// Whether a webhook changes objects or only refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookKind {
    /// May answer with a JSON patch.
    Mutating,
    /// May only allow or refuse.
    Validating,
}

/// Which writes a webhook is asked about; `*` stands for any.
#[derive(Debug, Clone)]
pub struct WebhookRule {
    /// API groups; `""` is the core group.
    pub groups: Vec<String>,
    /// API versions.
    pub versions: Vec<String>,
    /// Plural names, with `/subresource` where a subresource is meant.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
}

/// A webhook of this process.
#[derive(Clone)]
pub struct Webhook {
    /// Its name, as refusals quote it.
    pub name: String,
    /// What it may do.
    pub kind: WebhookKind,
    /// What it is asked about.
    pub rules: Vec<WebhookRule>,
    /// Its answer.
    pub handler: WebhookHandler,
}

fn covers(list: &[String], value: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == value)
}

impl Webhook {
    pub(super) fn concerns(&self, attributes: &Attributes) -> bool {
        let resource = &attributes.resource;
        let path = if attributes.subresource.is_empty() {
            resource.plural.clone()
        } else {
            format!("{}/{}", resource.plural, attributes.subresource)
        };
        self.rules.iter().any(|rule| {
            covers(&rule.groups, &resource.group)
                && covers(&rule.versions, &resource.version)
                && covers(&rule.resources, &path)
                && covers(&rule.operations, attributes.operation.as_str())
        })
    }
}

/// Asks every webhook of one kind that is concerned, in order.
pub(super) async fn call(
    server: &Server,
    attributes: &mut Attributes,
    kind: WebhookKind,
) -> Result<Vec<String>, ApiError> {
    let mut warnings = Vec::new();
    for webhook in &server.state.webhooks {
        if webhook.kind != kind || !webhook.concerns(attributes) {
            continue;
        }
        let review = (webhook.handler)(server.client(), review(server, attributes)).await;
        let response = review.get("response").cloned().unwrap_or_default();
        let listed = response.get("warnings").and_then(Value::as_array);
        warnings.extend(
            listed
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned),
        );
        if response.get("allowed").and_then(Value::as_bool) != Some(true) {
            return Err(refusal(&webhook.name, response.get("status")));
        }
        if kind == WebhookKind::Mutating {
            patch(&webhook.name, attributes, &response)?;
        }
    }
    Ok(warnings)
}

fn review(server: &Server, attributes: &Attributes) -> Value {
    let resource = &attributes.resource;
    let gvk = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let gvr = json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": server.state.new_uid(),
            "kind": gvk,
            "resource": gvr,
            "subResource": attributes.subresource,
            "requestKind": gvk,
            "requestResource": gvr,
            "name": attributes.name,
            "namespace": attributes.namespace,
            "operation": attributes.operation.as_str(),
            "userInfo": attributes.user.info(),
            "object": attributes.object,
            "oldObject": attributes.old,
            "dryRun": attributes.dry_run,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": format!("{}Options", options_kind(attributes))},
        },
    })
}

fn options_kind(attributes: &Attributes) -> &'static str {
    match attributes.operation.as_str() {
        "CREATE" => "Create",
        "UPDATE" => "Update",
        _ => "Delete",
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
    let reason = match text("reason") {
        "Invalid" => "Invalid",
        "Forbidden" => "Forbidden",
        "BadRequest" => "BadRequest",
        _ => "",
    };
    ApiError::new(code, reason, format!("admission webhook \"{name}\" {why}"))
}

fn patch(name: &str, attributes: &mut Attributes, response: &Value) -> Result<(), ApiError> {
    let Some(encoded) = response.get("patch").and_then(Value::as_str) else {
        return Ok(());
    };
    let failed = |error: &dyn std::fmt::Display| {
        ApiError::internal(format!(
            "failed calling webhook \"{name}\": apply its patch: {error}"
        ))
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .map_err(|error| failed(&error))?;
    let operations: json_patch::Patch = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
    let Some(object) = attributes.object.as_mut() else {
        return Ok(());
    };
    json_patch::patch(object, &operations).map_err(|error| failed(&error))
}
