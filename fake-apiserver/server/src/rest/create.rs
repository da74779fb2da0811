//! Create.

use http::StatusCode;
use machinery::meta::{ObjectMeta, at};
use machinery::status::ApiError;
use rules::strategy::{app_armor, disabled, signing};
use rules::validation;
use rules::validation::metadata;
use shared_json::Value;
use store::{Change, CommitError, GroupResource, ObjectKey};

use super::context::{Answer, Context, Shown};
use super::original_body::{self, Sent};
use super::ownership::{Ownership, own};
use super::{conversion, definitions, device_taints, incoming, schema_rules, services};
use crate::admission::{self, Attributes, Operation};
use crate::authz;
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
    // The real server finds this out where it writes, and a dry run does not.
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
    let generated = generated_name(context, &object);
    fill_metadata(context, &mut object);
    let duplicates = metadata::dedup_owners(&mut object);
    context.resource.strategy.normalize(&mut object);
    device_taints::stamp(context, &mut object);
    if ownership == Ownership::Tracked {
        let shown = original_body::with_lists_left_out(&context.resource, &object, || sent(None));
        own_as(context, shown, &mut object).await;
    }
    let before = object.clone();
    let mut attributes = attributes(context, object);
    context.warnings.tell(duplicates);
    admission::mutate(&context.server, &mut attributes).await?;
    let mut object = attributes.object.take().unwrap_or_default();
    // What admission changed has no owner.
    let changed = object != before;
    // What the server says of an object is its own, whatever a webhook made of it.
    for field in ["uid", "creationTimestamp"] {
        object.copy_meta(&before, field);
    }
    if let Some(name) = generated.filter(|_| object.name().is_empty()) {
        object.set_meta("name", name);
    }
    if changed && let Some(schema) = context.resource.schema() {
        schema.default(&mut object);
    }
    check_namespace(context, &mut object)?;
    authz::escalation::check(context, &object, None)?;
    services::give(context, &mut object, None)?;
    if context.table().resource == "pods" && !context.resource.is_custom() {
        context.warnings.tell(app_armor::warnings(&object, ""));
    }
    prepare(context, &mut object, &read);
    validate(context, &object, sent)?;
    services::settle(context, &mut object);
    if context.table().resource == "jobs"
        && let Some(schema) = context.resource.schema()
    {
        // What the store gives back is defaulted once more: a job without labels gets those that its template got meanwhile.
        schema.default(&mut object);
    }
    if context.resource.is_custom() {
        context.warnings.tell(metadata::finalizer_warnings(&object, None));
    } else {
        context
            .warnings
            .tell(validation::warnings(context.table(), &object, None));
    }
    attributes.name = object.name().to_owned();
    attributes.object = Some(object);
    admission::validate(&context.server, &mut attributes).await?;
    let mut object = attributes.object.take().unwrap_or_default();
    if context.resource.is_custom()
        && context.resource.has_status()
        && let Some(schema) = context.resource.schema()
    {
        // The status that was sent is gone; what the schema gives one is there as soon as the object is read.
        schema.default(&mut object);
    }
    let object = if context.params.dry_run && context.resource.is_custom() {
        object
    } else if context.params.dry_run {
        // What the form for the store does not keep is not shown either.
        let stored = conversion::to_storage(&context.resource, object);
        conversion::seen_from_storage(&context.resource, &stored).into_owned()
    } else {
        conversion::stored_form(context.state(), &context.resource, object).await?
    };
    let shown = commit(context, object)?;
    if let Shown::Stored(stored) = &shown {
        conversion::ready(context.state(), &context.resource, std::slice::from_ref(stored)).await?;
    }
    Ok(Answer {
        code: StatusCode::CREATED,
        object: shown,
    })
}

/// Sets the managed fields of a new object. `shown` is the object with the empty lists that the client sent, if it had any.
async fn own_as(context: &Context, shown: Option<Value>, object: &mut Value) {
    let Some(mut shown) = shown else {
        return own(context, None, object).await;
    };
    own(context, None, &mut shown).await;
    object.copy_meta(&shown, "managedFields");
}

fn attributes(context: &Context, object: Value) -> Attributes {
    Attributes {
        user: context.user.clone(),
        operation: Operation::Create,
        resource: context.resource.clone(),
        subresource: String::new(),
        namespace: context.request.namespace.clone(),
        // A path may name a custom resource that is created: admission is told that name, and the object keeps its own.
        name: match (context.request.name.as_str(), object.name()) {
            ("", "") => object.meta_str("generateName").to_owned(),
            ("", name) | (name, _) => name.to_owned(),
        },
        object: Some(object),
        old: None,
        dry_run: context.params.dry_run,
        options: admission::options(&context.params, "CreateOptions"),
        warnings: context.warnings.clone(),
    }
}

/// The namespace of path and object must agree.
pub(crate) fn check_namespace(context: &Context, object: &mut Value) -> Result<(), ApiError> {
    let path = &context.request.namespace;
    if !context.resource.namespaced {
        object.metadata_mut().remove("namespace");
        return Ok(());
    }
    if path.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let given = object.namespace().to_owned();
    if !given.is_empty() && given != *path {
        return Err(ApiError::other_namespace());
    }
    object.set_meta("namespace", path.clone());
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
    Some(format!("{base}{}", context.state().names.suffix(&base)))
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

/// `read`: the object as it was brought into shape.
fn prepare(context: &Context, object: &mut Value, read: &Value) {
    let strategy = context.resource.strategy;
    // A status that the client sent does not become the object's.
    if context.resource.has_status() && !context.resource.is_custom() && object.get("status").is_none() {
        object["status"] = Value::Object(shared_json::Map::new());
    }
    if context.resource.has_status() || !context.resource.is_custom() {
        strategy.prepare_create(object);
    }
    if !context.resource.is_custom() {
        disabled::drop(context.table(), object, None);
    }
    if context.table().resource == "certificatesigningrequests" && !context.resource.is_custom() {
        signing::set_requester(object, &context.user);
    }
    if strategy.has_generation() {
        object.set_meta("generation", 1);
    }
    // These alone get a name if they have none.
    let is_limit = context.table().resource == "limitranges" && !context.resource.is_custom();
    if is_limit && object.name().is_empty() {
        object.set_meta("name", context.state().new_uid());
    }
    // What the strategy wrote takes the form in which Go's encoder would write it.
    if let Some(schema) = context
        .resource
        .schema()
        .filter(|_| !context.resource.is_custom())
    {
        schema.canonicalize_changed(object, Some(read));
    }
}

fn validate(context: &Context, object: &Value, sent: Sent<'_>) -> Result<(), ApiError> {
    let resource = &context.resource;
    let mut errors = Vec::new();
    if !resource.is_custom() {
        errors = validation::before_metadata(context.table(), object);
    }
    errors.extend(authz::devices::claimed(context, object));
    // Events of old are refused for what they say before anybody looks at their metadata.
    if errors.is_empty() || !resource.group.is_empty() {
        errors.extend(metadata::validate(resource.of_metadata(), object));
    }
    let (complaints, _) = schema_rules::check(resource, "", (object, None), &errors);
    errors.extend(complaints);
    if resource.is_custom() {
        errors.extend(resource.strategy.validate_create(object));
    } else {
        let check = |object: &Value| {
            let mut errors = resource.strategy.validate_create(object);
            let object = conversion::validated(resource, object);
            errors.extend(validation::create(context.table(), &object));
            errors
        };
        errors.extend(original_body::check_as_sent(
            resource,
            object,
            || sent(None),
            check,
        ));
    }
    if errors.is_empty() {
        return Ok(());
    }
    original_body::show_empty(&mut errors, resource.schema().as_deref(), || sent(None));
    Err(ApiError::invalid(
        resource.validated_group(),
        &resource.kind,
        object.name(),
        &errors,
    ))
}

/// Writes the new object, which has the form for the store; or only says whether it could be written, of a dry run.
fn commit(context: &Context, object: Value) -> Result<Shown, ApiError> {
    let state = context.state();
    let resource = &context.resource;
    let key = ObjectKey::new(object.namespace(), object.name());
    // The real server takes any name for a generated one where `generateName` is set, too.
    let generated = !object.meta_str("generateName").is_empty();
    let exists = || {
        let mut error = ApiError::already_exists(&resource.group_resource(), &key.name);
        if generated {
            error = error.could_not_generate();
        }
        let present = state.store.get(context.table(), &key);
        if present.is_some_and(|present| present.value.is_terminating()) {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    };
    let defines = resource.group == "apiextensions.k8s.io";
    if context.params.dry_run {
        if state.store.get(context.table(), &key).is_some() {
            return Err(exists());
        }
        return Ok(Shown::Made(object));
    }
    if defines {
        if state.store.get(context.table(), &key).is_some() {
            return Err(exists());
        }
        state
            .registry
            .define(&object, state.store.revision())
            .map_err(|errors| ApiError::invalid(&resource.group, &resource.kind, object.name(), &errors))?;
    }
    let stored = state
        .store
        .commit(context.table(), &key, None, Change::Put(object))
        .map_err(|error| match error {
            CommitError::Stale => exists(),
            CommitError::TooLarge => ApiError::too_large_to_store(),
        })?;
    state.expiry.note(context.table(), &stored, state.clock.now());
    if context.table().resource == "controllerrevisions"
        && context.request.verb != Verb::Patch
        && let Some(data) = original_body::revision_data(context)
    {
        state.revisions.keep(stored.value.uid(), data);
    }
    if defines {
        // The real server accepts the names and establishes the resource a moment later, by a write of its own.
        let group = at(&stored.value, "spec.group").and_then(Value::as_str);
        definitions::settle(state, group.unwrap_or_default());
    }
    Ok(Shown::Stored(stored))
}
