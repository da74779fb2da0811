//! `TokenRequest`s: tokens for service accounts.

use machinery::meta::{ObjectMeta as _, at};
use machinery::status::ApiError;
use machinery::types::rfc3339;
use machinery::user::SERVICE_ACCOUNT_PREFIX;
use pod_rules::field_error::FieldError;
use shared_json::{Array, Value, json};
use store::{GroupResource, ObjectKey};

use crate::context::{Answer, Context, Shown};
use crate::tokens::ISSUER;

const DEFAULT_SECONDS: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

/// A request for a token that says for how long.
pub(crate) fn with_lifetime(mut request: Value) -> Value {
    if at(&request, "spec.expirationSeconds").is_none_or(Value::is_null) {
        if !request.is_object() {
            request = json!({});
        }
        request["spec"]["expirationSeconds"] = json!(DEFAULT_SECONDS);
    }
    request
}

/// A request for a token with all that it leaves out, as admission sees it.
pub(crate) fn completed(context: &Context, request: &Value) -> Value {
    let mut request = request.clone();
    let state = context.state();
    for (field, value) in [
        ("name", Value::from(context.request.name.clone())),
        ("uid", Value::from(state.new_uid())),
        ("creationTimestamp", Value::from(state.now())),
    ] {
        request.set_meta(field, value);
    }
    for (field, value) in [
        ("audiences", json!([ISSUER])),
        ("expirationSeconds", json!(DEFAULT_SECONDS)),
        ("boundObjectRef", Value::Null),
    ] {
        if at(&request, "spec").is_none_or(|spec| spec.get(field).is_none()) {
            request["spec"][field] = value;
        }
    }
    request["status"] = json!({"token": "", "expirationTimestamp": null});
    request
}

/// Applies admission's changes of the completed request.
pub(crate) fn take_changes(request: &mut Value, before: &Value, judged: &Value) {
    if before.get("spec") != judged.get("spec") {
        request["spec"] = judged["spec"].clone();
    }
    for field in ["labels", "annotations"] {
        request.copy_meta(judged, field);
    }
}

/// Answers a `TokenRequest` for the service account that the path names.
///
/// # Errors
/// 404 for an account or a bound object that does not exist, 409 for a bound object with another uid, 422 for a request
/// may not ask for.
pub(crate) fn answer(context: &Context, request: Value) -> Result<Answer, ApiError> {
    if !request.name().is_empty() && request.name() != context.request.name {
        let detail = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", request.name(), detail);
        return Err(ApiError::invalid(
            "authentication.k8s.io",
            "TokenRequest",
            &context.request.name,
            &[error],
        ));
    }
    let account = context.existing()?;
    let (asked, present) = (request.uid(), account.value.uid());
    if !asked.is_empty() && asked != present {
        let table = GroupResource::new("authentication.k8s.io", "TokenRequest");
        let why = format!(
            "the UID in the token request ({asked}) does not match the UID of the service account ({present})"
        );
        return Err(ApiError::conflict(&table, &context.request.name, &why));
    }
    let seconds = at(&request, "spec.expirationSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(DEFAULT_SECONDS);
    let problem = if seconds < SECONDS_MIN {
        Some("may not specify a duration less than 10 minutes")
    } else if seconds > SECONDS_MAX {
        Some("may not specify a duration larger than 2^32 seconds")
    } else {
        None
    };
    if let Some(problem) = problem {
        let error = FieldError::invalid("spec.expirationSeconds", seconds, problem);
        return Err(ApiError::invalid(
            "authentication.k8s.io",
            "TokenRequest",
            "",
            &[error],
        ));
    }
    let given = at(&request, "spec.audiences")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty());
    let audiences = given
        .cloned()
        .unwrap_or_else(|| Array::from([Value::from(ISSUER)]));
    let state = context.state();
    let (namespace, name) = (&context.request.namespace, &context.request.name);
    let now = state.clock.now_seconds();
    let expires = now.as_second() + seconds;
    let mut own = json!({
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": account.value.uid()},
    });
    if let Some(bound) = at(&request, "spec.boundObjectRef").filter(|bound| bound.is_object()) {
        for (part, bound) in bound_objects(context, bound)? {
            own[part] = bound;
        }
    }
    let claims = json!({
        "aud": audiences, "exp": expires, "iat": now.as_second(), "nbf": now.as_second(), "iss": ISSUER,
        "jti": state.new_uid(), "kubernetes.io": own, "sub": format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"),
    });
    let token = state
        .tokens
        .sign(&claims)
        .ok_or_else(|| ApiError::internal("failed to sign the token"))?;
    let expiration = jiff::Timestamp::from_second(expires)
        .map(rfc3339)
        .unwrap_or_default();
    let mut spec = json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": null});
    if let Some(bound) = at(&request, "spec.boundObjectRef") {
        spec["boundObjectRef"] = bound.clone();
    }
    let mut answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": request.get("metadata").filter(|metadata| metadata.is_object()).cloned().unwrap_or_else(|| json!({})),
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": expiration},
    });
    for (field, value) in [
        ("name", Value::from(name.as_str())),
        ("namespace", Value::from(namespace.as_str())),
        ("uid", Value::from(account.value.uid())),
        ("creationTimestamp", Value::from(rfc3339(now))),
    ] {
        answer.set_meta(field, value);
    }
    Ok(Answer::created(Shown::Made(answer)))
}

/// The pod, secret or node that a token is to be good for only as long as it exists. After a pod comes the node that it is
/// bound to, without a uid if there is no such node.
fn bound_objects(context: &Context, bound: &Value) -> Result<Vec<(&'static str, Value)>, ApiError> {
    let text = |field: &str| bound.get(field).and_then(Value::as_str).unwrap_or_default();
    // Of the version only the group matters.
    let (part, resource) = match (text("apiVersion"), text("kind")) {
        (version, "Pod") if !version.contains('/') => ("pod", "pods"),
        (version, "Secret") if !version.contains('/') => ("secret", "secrets"),
        (version, "Node") if !version.contains('/') => ("node", "nodes"),
        (version, kind) => {
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {}{version}, Kind={kind}",
                if version.contains('/') { "" } else { "/" }
            )));
        }
    };
    let resource = GroupResource::new("", resource);
    let namespace = if part == "node" {
        ""
    } else {
        context.request.namespace.as_str()
    };
    let key = ObjectKey::new(namespace, text("name"));
    let Some(found) = context.state().store.get(&resource, &key) else {
        return Err(ApiError::not_found(&resource, text("name")));
    };
    let uid = found.value.uid().to_owned();
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        // This one names the kind.
        let kind = GroupResource::new("", text("kind"));
        return Err(ApiError::conflict(&kind, text("name"), &why));
    }
    let node = (part == "pod")
        .then(|| {
            found.value.with(|pod| {
                at(pod, "spec.nodeName")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            })
        })
        .flatten()
        .filter(|name| !name.is_empty());
    let node = node.map(|name| {
        let stored = context
            .state()
            .store
            .get(&GroupResource::new("", "nodes"), &ObjectKey::new("", &name));
        let mut claim = json!({"name": name});
        if let Some(stored) = stored {
            claim["uid"] = Value::from(stored.value.uid());
        }
        ("node", claim)
    });
    let bound = (part, json!({"name": text("name"), "uid": uid}));
    Ok(std::iter::once(bound).chain(node).collect())
}
