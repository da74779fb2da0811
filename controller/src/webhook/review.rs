//! From an AdmissionReview to its answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kit::admission::{Refusal, Request, Rule, Surroundings, Webhook};
use crate::workloads::ALL;
use crate::{injection, protection};

/// Every webhook: those of pods and of other objects, then those of the kinds.
fn webhooks() -> impl Iterator<Item = &'static Webhook> {
    let kinds = ALL.iter().flat_map(|workload| workload.webhooks);
    injection::WEBHOOKS
        .iter()
        .chain(protection::WEBHOOKS)
        .chain(kinds)
}

/// The rules of the webhooks, with the names and paths of OpenKruise's installation.
pub fn rules() -> impl Iterator<Item = Rule> {
    webhooks().map(|webhook| webhook.rule)
}

/// Answers `review` (`admission.k8s.io/v1`) as the webhook at `path`: gives it back with `response` filled in, changes as
/// a JSON patch in base64.
pub async fn review(path: &str, review: &Value, surroundings: &Surroundings) -> Value {
    let null = Value::Null;
    let request = review.get("request").unwrap_or(&null);
    let uid = request.get("uid").cloned().unwrap_or_default();
    let response = match decide(path, request, surroundings).await {
        Ok(None) => json!({ "uid": uid, "allowed": true }),
        Ok(Some(patch)) => {
            let patch = STANDARD.encode(serde_json::to_vec(&patch).unwrap_or_default());
            json!({ "uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch })
        }
        Err(Refusal { code, message }) => {
            json!({ "uid": uid, "allowed": false, "status": { "code": code, "message": message } })
        }
    };
    let version = review
        .get("apiVersion")
        .cloned()
        .unwrap_or_else(|| json!("admission.k8s.io/v1"));
    json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response })
}

async fn decide(path: &str, request: &Value, surroundings: &Surroundings) -> Result<Option<Value>, Refusal> {
    let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
    let at = |pointer: &str| request.pointer(pointer);
    let dry_run = at("/options/dryRun").and_then(Value::as_array);
    let object = |field: &str| request.get(field).filter(|object| !object.is_null());
    let request = Request {
        uid: text("uid"),
        operation: text("operation"),
        subresource: text("subResource"),
        name: text("name"),
        namespace: text("namespace"),
        user: at("/userInfo/username")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        dry_run: dry_run.is_some_and(|values| !values.is_empty()),
        object: object("object"),
        old: object("oldObject"),
        surroundings,
    };
    match webhooks().find(|webhook| webhook.rule.is_at(path)) {
        Some(webhook) => (webhook.answer)(&request).await,
        None => Err(Refusal::new(404, format!("there is no webhook at {path}"))),
    }
}
