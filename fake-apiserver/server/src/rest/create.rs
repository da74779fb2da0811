//! Create.

use http::StatusCode;
use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::original_body::{self, Sent};
use super::ownership::Ownership;
use super::write::{Write, check_namespace};
use crate::context::{Answer, Context};
use crate::incoming;
use crate::message::payload::Payload;
use crate::message::request::Verb;

/// The longest base of a generated name: with five more characters it still is a valid label.
const GENERATED_BASE_MAX: usize = 58;

/// Creates the object that a client sent.
pub(crate) async fn create(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (object, warnings) = incoming::read(context, body)?;
    context.warnings.tell(warnings);
    create_shaped(context, object, Ownership::Tracked, &|_| {
        original_body::in_body(context)
    })
    .await
}

/// Creates an object that is in shape. `ownership` is the source of its managed fields, `sent` its original body.
pub(crate) async fn create_shaped(
    context: &Context,
    mut object: Value,
    ownership: Ownership,
    sent: Sent<'_>,
) -> Result<Answer, ApiError> {
    let read = object.clone();
    check_namespace(context, &mut object)?;
    check_defined(context, &object)?;
    check_unversioned(context, &object)?;
    let generated = generated_name(context, &object);
    fill_metadata(context, &mut object);
    let base = (&read, generated.as_deref());
    let written = Write::creation(context, object, base, (ownership, sent))
        .run()
        .await?;
    written.ok_or_else(|| ApiError::internal("another write came before a creation"))
}

/// The real server finds this out where it writes, and a dry run does not.
fn check_unversioned(context: &Context, object: &Value) -> Result<(), ApiError> {
    let is_versioned = object
        .resource_version()
        .parse::<u64>()
        .is_ok_and(|version| version != 0);
    if is_versioned && !context.params.dry_run {
        return Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    Ok(())
}

/// Nothing is created of a kind whose definition is going.
fn check_defined(context: &Context, object: &Value) -> Result<(), ApiError> {
    let resource = &context.resource;
    if !resource.is_custom() {
        return Ok(());
    }
    let table = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let key = ObjectKey::new("", &format!("{}.{}", resource.plural, resource.group));
    let definition = context.state().store.get(&table, &key);
    if definition.is_some_and(|definition| definition.value.is_terminating()) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(
            &resource.group_resource(),
            object.name(),
            why,
        ));
    }
    Ok(())
}

/// How many names the server makes up for an object before it says that it was not able to (Kubernetes 1.32 and later).
const GENERATED_ATTEMPTS_MAX: usize = 8;

/// The name of an object that asks for a generated one. It is given once admission has seen the object without.
fn generated_name(context: &Context, object: &Value) -> Option<String> {
    let base = object.meta_str("generateName");
    if base.is_empty() || !object.name().is_empty() {
        return None;
    }
    // Names of addresses are addresses.
    if context.table().resource == "ipaddresses" {
        return Some(base.to_owned());
    }
    let base: String = base.chars().take(GENERATED_BASE_MAX).collect();
    let state = context.state();
    let mut name = String::new();
    for _ in 0..GENERATED_ATTEMPTS_MAX {
        name = format!("{base}{}", state.names.suffix(&base));
        let key = ObjectKey::new(object.namespace(), &name);
        if state.store.get(context.table(), &key).is_none() {
            break;
        }
    }
    Some(name)
}

fn fill_metadata(context: &Context, object: &mut Value) {
    let state = context.state();
    let (uid, now) = (state.new_uid(), state.now());
    let meta = object.metadata_mut();
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        meta.remove(field);
    }
    // What is applied loses this on its way to the store, and a dry run does not get there.
    if !context.params.dry_run || context.request.verb != Verb::Patch {
        meta.remove("selfLink");
    }
    object.set_meta("uid", uid);
    object.set_meta("creationTimestamp", now);
}
