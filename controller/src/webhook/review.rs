//! From an AdmissionReview to its answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client_kit::{Names, Seed, SeededNames};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::pod::Pod;

use super::rules::{MUTATE_CLONESET, MUTATE_POD, VALIDATE_CLONESET};
use super::{forbid, mutate_cloneset, mutate_pod, validate_cloneset};
use pod_rules::field_error::{FieldError, aggregate};

/// A refusal: an HTTP status and its text.
struct Refusal {
    code: u16,
    message: String,
}

impl Refusal {
    fn new(code: u16, message: String) -> Self {
        Self { code, message }
    }
}

/// Answers `review` (`admission.k8s.io/v1`) as the webhook at `path`: gives it back with `response` filled in, changes as
/// a JSON patch in base64. Without a `client`, what needs the cluster's pods is not checked.
pub async fn review(path: &str, review: &Value, client: Option<&Client>) -> Value {
    let null = Value::Null;
    let request = review.get("request").unwrap_or(&null);
    let uid = request.get("uid").cloned().unwrap_or_default();
    let response = match decide(path, request, client).await {
        Ok(None) => json!({ "uid": uid, "allowed": true }),
        Ok(Some(patch)) => {
            let patch = STANDARD.encode(patch.to_string());
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

async fn decide(path: &str, request: &Value, client: Option<&Client>) -> Result<Option<Value>, Refusal> {
    let object = request.get("object").filter(|object| !object.is_null());
    let old = request.get("oldObject").filter(|object| !object.is_null());
    let operation = request
        .get("operation")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (path, object) {
        (MUTATE_POD, Some(pod)) => {
            let mut changed = pod.clone();
            // Reviews are told apart by their uid, so that names drawn from it differ.
            let uid = request.get("uid").and_then(Value::as_str).unwrap_or_default();
            let names = SeededNames::new(Seed(0).fork(uid));
            mutate_pod(&mut changed, || names.suffix("")).map_err(|message| Refusal::new(500, message))?;
            Ok(patch(pod, &changed))
        }
        (MUTATE_CLONESET, Some(set)) => {
            let mut changed = set.clone();
            mutate_cloneset(&mut changed, old).map_err(|message| Refusal::new(400, message))?;
            Ok(patch(set, &changed))
        }
        (VALIDATE_CLONESET, _) if operation == "DELETE" => match old.and_then(forbid::deletion) {
            Some(message) => Err(Refusal::new(403, message)),
            None => Ok(None),
        },
        (VALIDATE_CLONESET, Some(set)) => {
            let mut errors = validate_cloneset(set, old);
            if errors.is_empty() {
                errors.extend(pods_to_delete(set, old, client).await);
            }
            if errors.is_empty() {
                Ok(None)
            } else {
                Err(Refusal::new(422, aggregate(&errors)))
            }
        }
        (MUTATE_POD | MUTATE_CLONESET | VALIDATE_CLONESET, None) => {
            Err(Refusal::new(400, "there is no content to decode".to_owned()))
        }
        _ => Err(Refusal::new(404, format!("there is no webhook at {path}"))),
    }
}

/// The JSON patch from one object to the other, its name and member by member of its `spec`; none when they are equal.
fn patch(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let name = |object: &Value| object.pointer("/metadata/name").cloned();
    let mut operations = Vec::new();
    if name(before) != name(after) {
        operations.push(json!({ "op": "add", "path": "/metadata/name", "value": name(after) }));
    }
    let (Some(old), Some(new)) = (
        before.get("spec").and_then(Value::as_object),
        after.get("spec").and_then(Value::as_object),
    ) else {
        let op = if before.get("spec").is_some() {
            "replace"
        } else {
            "add"
        };
        operations.push(json!({ "op": op, "path": "/spec", "value": after.get("spec") }));
        return Some(Value::Array(operations));
    };
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        operations.push(json!({ "op": "remove", "path": format!("/spec/{}", escape(key)) }));
    }
    for (key, value) in new {
        let op = match old.get(key) {
            Some(before) if before == value => continue,
            Some(_) => "replace",
            None => "add",
        };
        operations.push(json!({ "op": op, "path": format!("/spec/{}", escape(key)), "value": value }));
    }
    Some(Value::Array(operations))
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Pods that are newly named in `podsToDelete` must be the set's own and must not terminate already.
async fn pods_to_delete(set: &Value, old: Option<&Value>, client: Option<&Client>) -> Vec<FieldError> {
    let Some(client) = client else { return Vec::new() };
    let names = |set: Option<&Value>| -> Vec<String> {
        let list = set
            .and_then(|set| set.pointer("/spec/scaleStrategy/podsToDelete"))
            .and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    let known = names(old);
    let namespace = set
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let uid = set
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut errors = Vec::new();
    for name in names(Some(set)).iter().filter(|name| !known.contains(name)) {
        let detail = match pods.get_opt(name).await {
            Ok(None) => format!("find pod {name} failed: Pod {name:?} not found"),
            Err(error) => format!("find pod {name} failed: {error}"),
            Ok(Some(pod)) if pod.metadata.deletion_timestamp.is_some() => {
                format!("find pod {name} already terminating")
            }
            Ok(Some(pod)) if !pod.owner_references().iter().any(|owner| owner.uid == uid) => {
                format!("find pod {name} owner is not this CloneSet")
            }
            Ok(Some(_)) => continue,
        };
        errors.push(FieldError::invalid(
            "spec.scaleStrategy.podsToDelete",
            format!("{name:?}"),
            detail,
        ));
    }
    errors
}
