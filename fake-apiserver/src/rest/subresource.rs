//! Subresources other than status: scale, binding, eviction, finalize.

use http::StatusCode;
use serde_json::{Value, json};

use super::context::{Answer, Context, Shown};
use super::ownership::Ownership;
use super::patch::PatchKind;
use super::update::{Update, check_name, update};
use super::{conversion, eviction};
use crate::encode::cells::label_selector_text;
use crate::field_error::{FieldError, aggregate};
use crate::http::decode;
use crate::http::request::Verb;
use crate::meta::{ObjectMeta, at};
use crate::patch::{json as json_patch, merge};
use crate::status::ApiError;
use crate::types;

/// Answers a request for a subresource that is not the status.
pub(crate) async fn handle(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let request = &context.request;
    match (
        request.resource.as_str(),
        request.subresource.as_str(),
        request.verb,
    ) {
        (_, "scale", Verb::Get) => {
            let existing = context.existing()?;
            Ok(Answer::ok(Shown::Made(scale_of(context, &existing.value))))
        }
        (_, "scale", Verb::Update | Verb::Patch) => put_scale(context, body).await,
        ("pods", "binding", Verb::Create) => {
            bind(context, decode::decode(&context.content_type, body)?).await
        }
        ("pods", "eviction", Verb::Create) => eviction::evict(context, body).await,
        ("namespaces", "finalize", Verb::Update) => {
            finalize(context, decode::decode(&context.content_type, body)?).await
        }
        ("pods", "ephemeralcontainers" | "resize", Verb::Get) => {
            Ok(Answer::ok(Shown::Stored(context.existing()?)))
        }
        (_, "status", Verb::Get) => Ok(Answer::ok(Shown::Stored(context.existing()?))),
        _ => Err(ApiError::no_such_resource()),
    }
}

pub(super) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// The same request for another subresource; the empty one is the object itself.
pub(super) fn context_of(context: &Context, subresource: &str) -> Context {
    let mut request = context.request.clone();
    request.subresource = subresource.to_owned();
    Context {
        server: context.server.clone(),
        resource: context.resource.clone(),
        request,
        params: context.params.clone(),
        accepted: context.accepted,
        content_type: context.content_type.clone(),
        manager: context.manager.clone(),
        user: context.user.clone(),
    }
}

/// Where the object keeps its replicas: dotted paths of spec, status and the selector's text.
fn scale_paths(context: &Context) -> (String, String, Option<String>) {
    let strip = |path: &str| path.trim_start_matches('.').to_owned();
    match context
        .resource
        .custom
        .as_ref()
        .and_then(|custom| custom.scale.as_ref())
    {
        Some(scale) => {
            let selector = scale.label_selector.as_deref().map(strip);
            (
                strip(&scale.spec_replicas),
                strip(&scale.status_replicas),
                selector,
            )
        }
        None => ("spec.replicas".to_owned(), "status.replicas".to_owned(), None),
    }
}

fn scale_of(context: &Context, object: &Value) -> Value {
    let (spec_path, status_path, selector_path) = scale_paths(context);
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let selector = match &selector_path {
        Some(path) => at(object, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        None if context.resource.is_custom() => String::new(),
        None => match at(object, "spec.selector") {
            Some(selector)
                if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() =>
            {
                label_selector_text(selector)
            }
            Some(labels) => label_selector_text(&json!({"matchLabels": labels})),
            None => String::new(),
        },
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().and_then(|meta| meta.get(field)) {
            metadata[field] = value.clone();
        }
    }
    let mut spec = json!({});
    if number(&spec_path) != 0 {
        spec["replicas"] = Value::from(number(&spec_path));
    }
    let mut status = json!({"replicas": number(&status_path)});
    if !selector.is_empty() {
        status["selector"] = Value::from(selector);
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// What is wrong with the types of a scale's fields.
fn scale_schema(scale: &Value) -> Result<(), String> {
    match types::builtin(("autoscaling", "v1", "Scale")) {
        Some(schema) => schema.check_types(scale).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

fn check_scale(scale: &Value) -> Result<(), ApiError> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !matches!(kind, "" | "Scale") {
        let short = version.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{short}\" cannot be handled as a Scale: converting ({short}.{kind}) to \
             (autoscaling.Scale): unknown conversion"
        )));
    }
    scale_schema(scale).map_err(|problem| {
        ApiError::bad_request(format!(
            "Scale in version \"v1\" cannot be handled as a Scale: {problem}"
        ))
    })
}

async fn put_scale(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let (spec_path, _, _) = scale_paths(context);
    let make = |old: &Value| {
        let present = scale_of(context, old);
        let scale = match context.request.verb {
            Verb::Update => {
                let scale = decode::decode(&context.content_type, body)?;
                check_scale(&scale)?;
                scale
            }
            _ => {
                let patch = decode::yaml(body)?;
                let patched = match PatchKind::of(&context.content_type, context.resource.is_custom())? {
                    PatchKind::Json => json_patch::apply(&present, &patch),
                    PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply => {
                        merge::apply(&present, &patch)
                    }
                };
                let patched = patched.map_err(|error| ApiError::bad_request(error.to_string()))?;
                if let Err(problem) = scale_schema(&patched) {
                    let error = FieldError::invalid("patch", patched.to_string(), problem);
                    return Err(ApiError::invalid("", "", "", &[error]));
                }
                patched
            }
        };
        if !scale.name().is_empty() {
            check_name(context, &scale)?;
        }
        let given = scale.resource_version();
        if !given.is_empty() && given != old.resource_version() {
            return Err(ApiError::modified(&context.resource.group_resource(), old.name()));
        }
        let replicas = at(&scale, "spec.replicas")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        if replicas < 0 {
            let resource = &context.resource;
            if resource.is_custom() {
                let detail = "should be a non-negative integer";
                let error = FieldError::invalid(format!(".{spec_path}"), replicas, detail);
                return Err(ApiError::invalid(
                    &resource.group,
                    &resource.kind,
                    old.name(),
                    &[error],
                ));
            }
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(ApiError::invalid("autoscaling", "Scale", old.name(), &[error]));
        }
        let mut object = old.clone();
        set_at(&mut object, &spec_path, Value::from(replicas));
        Ok((object, Vec::new()))
    };
    let answer = update(
        context,
        &Update {
            make: &make,
            ownership: Ownership::Tracked,
            unconditional: true,
        },
    )
    .await?;
    let object = match &answer.object {
        Shown::Stored(stored) => conversion::from_storage(&context.resource, stored.value.clone()),
        Shown::Made(value) => value.clone(),
    };
    Ok(Answer {
        object: Shown::Made(scale_of(context, &object)),
        ..answer
    })
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

/// Assigns the pod that a binding names.
pub(crate) async fn create_binding(context: &Context, body: &[u8]) -> Result<Answer, ApiError> {
    let binding = decode::decode(&context.content_type, body)?;
    let pods = context.state().registry.find("", "v1", "pods");
    let mut target = context_of(context, "binding");
    target.resource = pods.ok_or_else(ApiError::no_such_resource)?;
    target.request.resource = "pods".to_owned();
    target.request.name = binding.name().to_owned();
    bind(&target, binding).await
}

/// Assigns a pod to a node.
async fn bind(context: &Context, binding: Value) -> Result<Answer, ApiError> {
    let target = |field: &str| {
        let value = at(&binding, "target").and_then(|target| target.get(field));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (node, kind) = (target("name"), target("kind"));
    let resource = context.resource.group_resource();
    if binding.name() != context.request.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    let mut errors = Vec::new();
    if !matches!(kind.as_str(), "" | "Node") {
        errors.push(FieldError::not_supported(
            "target.kind",
            kind,
            &["Node", "<empty>"],
        ));
    }
    if node.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if !errors.is_empty() {
        let message = aggregate(&errors);
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let now = context.state().now();
    let make = |old: &Value| {
        if old.is_terminating() {
            let why = format!(
                "pod {} is being deleted, cannot be assigned to a host",
                old.name()
            );
            return Err(ApiError::conflict(&resource, old.name(), &why));
        }
        if let Some(present) = at(old, "spec.nodeName")
            .and_then(Value::as_str)
            .filter(|present| !present.is_empty())
        {
            let mut table = resource.clone();
            table.resource = "pods/binding".to_owned();
            let why = format!("pod {} is already assigned to node \"{present}\"", old.name());
            return Err(ApiError::conflict(&table, old.name(), &why));
        }
        let mut pod = old.clone();
        pod["spec"]["nodeName"] = Value::from(node.clone());
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        });
        let conditions = pod["status"]["conditions"].take();
        let mut conditions = conditions.as_array().cloned().unwrap_or_default();
        match conditions
            .iter_mut()
            .find(|c| c.get("type").and_then(Value::as_str) == Some("PodScheduled"))
        {
            Some(present) => *present = condition,
            None => conditions.push(condition),
        }
        pod["status"]["conditions"] = Value::Array(conditions);
        for field in ["labels", "annotations"] {
            for (key, value) in crate::meta::string_map(&binding, field) {
                pod["metadata"][field][key] = value.clone();
            }
        }
        Ok((pod, Vec::new()))
    };
    update(
        context,
        &Update {
            make: &make,
            ownership: Ownership::Tracked,
            unconditional: true,
        },
    )
    .await?;
    Ok(Answer::created(Shown::Made(success())))
}

/// Sets a namespace's finalizers; without any left it goes.
async fn finalize(context: &Context, namespace: Value) -> Result<Answer, ApiError> {
    let finalizers = at(&namespace, "spec.finalizers").cloned();
    let make = |old: &Value| {
        let mut object = old.clone();
        match &finalizers {
            Some(list) if list.as_array().is_some_and(|list| !list.is_empty()) => {
                object["spec"]["finalizers"] = list.clone();
            }
            _ => object["spec"] = json!({}),
        }
        Ok((object, Vec::new()))
    };
    let answer = update(
        context,
        &Update {
            make: &make,
            ownership: Ownership::Tracked,
            unconditional: true,
        },
    )
    .await?;
    if let Shown::Stored(stored) = &answer.object {
        let held = at(&stored.value, "spec.finalizers").is_some() || !stored.value.finalizers().is_empty();
        if stored.value.is_terminating() && !held {
            // Another write may have come between; then the next finalize removes it.
            let _gone = super::update::commit(context, stored, stored.value.clone(), true)?;
        }
    }
    Ok(answer)
}
