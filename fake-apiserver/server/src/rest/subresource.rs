//! Subresources other than status: binding, eviction, finalize; [`scale`] has a file of its own.

use http::StatusCode;
use machinery::meta::{ObjectMeta, at};
use machinery::status::ApiError;
use pod_rules::field_error::{FieldError, aggregate};
use rules::strategy::copy_field;
use shared_json::{Value, json};

use super::ownership::Ownership;
use super::subresource_body::{self, Taken};
use super::update::update;
use super::write::{Update, attributes, check_name, registry_key};
use super::{eviction, original_body, read, scale};
use crate::admission::{self, Attributes, Operation};
use crate::context::{Answer, Context, Shown, Warnings};
use crate::message::payload::Payload;
use crate::message::request::Verb;
use crate::{conversion, incoming};

/// Answers a request for a subresource that is not the status.
pub(crate) async fn handle(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let request = &context.request;
    if request.verb == Verb::Get {
        read::check_get_version(context)?;
    }
    match (
        request.resource.as_str(),
        request.subresource.as_str(),
        request.verb,
    ) {
        (_, "scale", Verb::Get) => {
            let existing = context.existing()?;
            conversion::ready(
                context.state(),
                &context.resource,
                std::slice::from_ref(&existing),
            )
            .await?;
            let seen = conversion::seen_from_storage(&context.resource, &existing.value);
            Ok(Answer::ok(Shown::Made(scale::read(context, &seen)?)))
        }
        (_, "scale", Verb::Update | Verb::Patch) => scale::put(context, body).await,
        ("pods", "binding", Verb::Create) => {
            let mut binding = subresource_body::read(context, body, BINDING)?;
            if binding.name() == request.name {
                admission::label_binding(context.state(), &mut binding);
                judge(context, &mut binding).await?;
            }
            bind(context, binding).await
        }
        ("pods", "eviction", Verb::Create) => eviction::evict(context, body).await,
        ("namespaces", "finalize", Verb::Update) => finalize(context, body).await,
        ("pods", "ephemeralcontainers" | "resize", Verb::Get) => {
            Ok(Answer::ok(Shown::Stored(context.existing()?)))
        }
        (_, "status" | "approval", Verb::Get) => Ok(Answer::ok(Shown::Stored(context.existing()?))),
        _ => Err(ApiError::no_such_resource()),
    }
}

const BINDING: Taken = Taken {
    kind: "Binding",
    package: "core",
    group: "",
};

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
        body: Payload::default(),
        manager: context.manager.clone(),
        user: context.user.clone(),
        local: None,
        is_remote: context.is_remote,
        warnings: Warnings::default(),
        asked: conversion::Asked::default(),
    }
}

/// Assigns the pod that a binding names.
pub(crate) async fn create_binding(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let mut binding = subresource_body::read(context, body, BINDING)?;
    // What is created has no identity yet.
    binding.metadata_mut().remove("uid");
    let pods = context.state().registry.find("", "v1", "pods");
    let mut target = context_of(context, "binding");
    target.warnings = context.warnings.clone();
    target.resource = pods.ok_or_else(ApiError::no_such_resource)?;
    target.request.resource = "pods".to_owned();
    target.request.name = binding.name().to_owned();
    judge(context, &mut binding).await?;
    bind(&target, binding).await
}

/// Lets admission judge the body of a subresource, and change it.
pub(crate) async fn judge(context: &Context, posted: &mut Value) -> Result<(), ApiError> {
    let mut object = posted.clone();
    if !context.request.namespace.is_empty() {
        object.set_meta("namespace", context.request.namespace.clone());
    }
    *posted = judge_as(context, Operation::Create, object).await?;
    Ok(())
}

/// Lets admission judge the options of a stream that is asked for.
pub(crate) async fn judge_connection(context: &Context, options: Value) -> Result<(), ApiError> {
    judge_as(context, Operation::Connect, options).await.map(|_| ())
}

async fn judge_as(context: &Context, operation: Operation, object: Value) -> Result<Value, ApiError> {
    let name = match context.request.name.as_str() {
        "" => object.name().to_owned(),
        name => name.to_owned(),
    };
    let mut attributes = Attributes {
        object: Some(object),
        ..attributes(context, operation, &name)
    };
    admission::judge_posted(&context.server, &mut attributes).await?;
    Ok(attributes.object.take().unwrap_or_default())
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
        bound_to_this(context, &binding, old)?;
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
            table.resource = "pods/binding".into();
            let why = format!("pod {} is already assigned to node \"{present}\"", old.name());
            return Err(ApiError::conflict(&table, old.name(), &why));
        }
        let gates = at(old, "spec.schedulingGates").and_then(Value::as_array);
        if gates.is_some_and(|gates| !gates.is_empty()) {
            let mut table = resource.clone();
            table.resource = "pods/binding".into();
            let why = format!("pod {} has non-empty .spec.schedulingGates", old.name());
            return Err(ApiError::conflict(&table, old.name(), &why));
        }
        let mut pod = old.clone();
        pod["spec"]["nodeName"] = Value::from(node.clone());
        // Where it was expected to go means nothing any more.
        if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("nominatedNodeName");
        }
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
            for (key, value) in machinery::meta::string_map(&binding, field) {
                pod["metadata"][field][key] = value.clone();
            }
        }
        Ok(pod)
    };
    update(
        context,
        &Update {
            make: &make,
            sent: &|_| None,
            // The pod's own storage writes this, beside those who keep track of owners.
            ownership: Ownership::Applied,
            unconditional: true,
            judged: true,
        },
    )
    .await?;
    Ok(Answer::created(Shown::Made(success())))
}

/// A binding may say which pod it means, and in which version.
fn bound_to_this(context: &Context, binding: &Value, pod: &Value) -> Result<(), ApiError> {
    let wanted = [
        ("UID", binding.uid(), pod.uid()),
        (
            "ResourceVersion",
            binding.resource_version(),
            pod.resource_version(),
        ),
    ];
    for (what, wanted, is) in wanted {
        if !wanted.is_empty() && wanted != is {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
                 {what} in precondition: {wanted}, {what} in object meta: {is}",
                registry_key(context)
            );
            return Err(ApiError::conflict(
                &context.resource.group_resource(),
                pod.name(),
                &why,
            ));
        }
    }
    Ok(())
}

/// Replaces a namespace with its finalizers; without any left it goes.
async fn finalize(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (namespace, warnings) = incoming::read(context, body)?;
    context.warnings.tell(warnings);
    check_name(context, &namespace)?;
    let make = |old: &Value| {
        let mut object = namespace.clone();
        copy_field(&mut object, old, "status");
        Ok(object)
    };
    update(
        context,
        &Update {
            make: &make,
            sent: &|_| original_body::in_body(context),
            ownership: Ownership::Tracked,
            unconditional: false,
            judged: false,
        },
    )
    .await
}
