//! Delete one object, or many.

use std::sync::Arc;

use machinery::meta::{ObjectMeta, at};
use machinery::status::{ApiError, details};
use machinery::types;
use machinery::types::rfc3339;
use pod_rules::field_error::FieldError;
use rules::strategy::Deletion;
use shared_json::{Array, Value, json};
use store::{GroupResource, Stored};

use super::options;
use super::read;
use super::write::{attributes, replace};
use crate::admission::{self, Attributes, Operation};
use crate::context::{Answer, Context, Page, Shown};
use crate::conversion;
use crate::message::decode;
use crate::message::params::Params;
use crate::message::payload::Payload;
use crate::message::request::Verb;
use crate::resources::Resource;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// The real server's name for the table of kinds that options are read with.
const OPTIONS_SCHEME: &str = "pkg/apis/meta/internalversion/scheme/register.go:27";
const RETRIES_MAX: usize = 5;

/// The options of a deletion, from its body or its query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub propagation: String,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
    /// Admission has judged the request.
    pub judged: bool,
}

impl DeleteOptions {
    /// The options as admission webhooks are shown them.
    fn shown(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(seconds) = self.grace_seconds {
            options["gracePeriodSeconds"] = Value::from(seconds);
        }
        if !self.propagation.is_empty() {
            options["propagationPolicy"] = Value::from(self.propagation.clone());
        }
        for (field, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(value) = value {
                options["preconditions"][field] = Value::from(value.clone());
            }
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// Reads the body of a deletion, or its query if there is no body.
    ///
    /// # Errors
    /// 400 for a body that is no `DeleteOptions`, 422 for options that make no sense.
    pub(crate) fn read(context: &Context, body: &[u8]) -> Result<Self, ApiError> {
        let given = !body.is_empty();
        let body = decode::decode(&context.content_type, body)?;
        if given && body.is_array() {
            return Err(ApiError::bad_request(
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { \
                 APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
            ));
        }
        let kind = at(&body, "kind").and_then(Value::as_str).unwrap_or_default();
        if !matches!(kind, "" | "DeleteOptions") {
            let version = at(&body, "apiVersion")
                .and_then(Value::as_str)
                .unwrap_or("meta.k8s.io/v1");
            if matches!((version, kind), ("v1", "Status" | "APIResourceList" | "APIGroup")) {
                return Err(ApiError::bad_request(format!(
                    "converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"
                )));
            }
            return Err(ApiError::bad_request(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{OPTIONS_SCHEME}\""
            )));
        }
        // A body leaves the query unread.
        let query = if given {
            Params::default()
        } else if let Some(wrong) = &context.params.wrong_grace_period {
            return Err(wrong.clone());
        } else {
            context.params.clone()
        };
        Self::from_parts(&query, &body)
    }

    /// Reads options that are a part of a created object, `Null` for none: of the query only `dryRun` counts.
    pub(crate) fn from_value(context: &Context, body: &Value) -> Result<Self, ApiError> {
        let query = Params {
            dry_run_given: context.params.dry_run_given.clone(),
            ..Params::default()
        };
        Self::from_parts(&query, body)
    }

    fn from_parts(params: &Params, body: &Value) -> Result<Self, ApiError> {
        if let Some(schema) = types::builtin(("", "v1", "DeleteOptions")) {
            schema
                .check_types(body)
                .map_err(|error| ApiError::bad_request(error.to_string()))?;
        }
        let text = |path: &str| at(body, path).and_then(Value::as_str).map(str::to_owned);
        let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let listed = at(body, "dryRun")
            .and_then(Value::as_array)
            .map(Array::as_slice)
            .unwrap_or_default();
        let mut dry_run: Vec<String> = listed
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        dry_run.extend(params.dry_run_given.iter().cloned());
        let orphan = at(body, "orphanDependents")
            .and_then(Value::as_bool)
            .or(params.orphan_dependents);
        let given = text("propagationPolicy");
        let says_none = given.as_ref().is_some_and(String::is_empty);
        let mut propagation = given.unwrap_or_else(|| params.propagation_policy.clone());
        let mut errors = Vec::new();
        if orphan.is_some() && !propagation.is_empty() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                "propagationPolicy",
                propagation.as_str(),
                detail,
            ));
        }
        if says_none || !matches!(propagation.as_str(), "" | "Orphan" | "Background" | "Foreground") {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                propagation.as_str(),
                &supported,
            ));
        }
        errors.extend(options::dry_run(&dry_run));
        if !errors.is_empty() {
            return Err(options::invalid("DeleteOptions", &errors));
        }
        if let (true, Some(orphan)) = (propagation.is_empty(), orphan) {
            propagation = if orphan { "Orphan" } else { "Background" }.to_owned();
        }
        Ok(Self {
            grace_seconds: at(body, "gracePeriodSeconds")
                .and_then(Value::as_i64)
                .or(params.grace_period_seconds),
            propagation,
            uid: text("preconditions.uid").or_else(|| said(&params.uid)),
            resource_version: text("preconditions.resourceVersion")
                .or_else(|| said(&params.resource_version)),
            dry_run: !dry_run.is_empty(),
            judged: false,
        })
    }
}

/// Deletes the object that the path names.
pub(crate) async fn delete(context: &Context, options: &DeleteOptions) -> Result<Answer, ApiError> {
    context.warnings.tell(warnings(&context.resource, options));
    for _ in 0..RETRIES_MAX {
        let existing = context.existing()?;
        if let Some(answer) = attempt(context, options, &existing).await? {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(
        &context.resource.group_resource(),
        &context.request.name,
    ))
}

async fn attempt(
    context: &Context,
    options: &DeleteOptions,
    existing: &Arc<Stored>,
) -> Result<Option<Answer>, ApiError> {
    let resource = &context.resource;
    check_preconditions(context, options, &existing.value)?;
    conversion::ready(context.state(), resource, std::slice::from_ref(existing)).await?;
    // A deletion of a collection names no object.
    let name = match context.request.verb {
        Verb::DeleteCollection => "",
        _ => &existing.key.name,
    };
    let mut attributes = Attributes {
        subresource: String::new(),
        namespace: existing.key.namespace.to_string(),
        old: Some(conversion::from_storage(resource, existing.value.clone())),
        dry_run: options.dry_run,
        options: options.shown(),
        ..attributes(context, Operation::Delete, name)
    };
    if !options.judged {
        admission::mutate(&context.server, &mut attributes).await?;
        admission::validate(&context.server, &mut attributes).await?;
    }

    let outcome = plan(context, options, &existing.value)?;
    if options.dry_run {
        let shown = |object: Value| Shown::Made(conversion::from_storage(resource, object));
        return Ok(Some(Answer::ok(match outcome {
            Outcome::Unchanged => Shown::Stored(Arc::clone(existing)),
            Outcome::Mark(object) => shown(object),
            Outcome::Remove(mut object) if resource.strategy.returns_deleted_object() => {
                if resource.strategy.ends_gracefully() {
                    mark(context, &mut object, 0);
                }
                shown(object)
            }
            Outcome::Remove(object) => Shown::Made(success(context, &object)),
        })));
    }
    let (stored, gone) = match outcome {
        Outcome::Unchanged => (Arc::clone(existing), false),
        Outcome::Mark(object) => match replace(context, existing, object, false)? {
            Some(stored) => (stored, false),
            None => return Ok(None),
        },
        Outcome::Remove(mut object) => {
            let mut from = Arc::clone(existing);
            if resource.strategy.ends_gracefully() {
                // No time at all is a grace as well: it is written before the object goes.
                mark(context, &mut object, 0);
                match replace(context, existing, object.clone(), false)? {
                    Some(marked) => from = marked,
                    None => return Ok(None),
                }
                object = from.value.clone();
            }
            match replace(context, &from, object, true)? {
                Some(stored) => (stored, true),
                None => return Ok(None),
            }
        }
    };
    Ok(Some(Answer::ok(
        if gone && !resource.strategy.returns_deleted_object() {
            Shown::Made(success(context, &stored.value))
        } else {
            Shown::Stored(stored)
        },
    )))
}

/// Whether the object is the one that was meant.
pub(super) fn check_preconditions(
    context: &Context,
    options: &DeleteOptions,
    object: &Value,
) -> Result<(), ApiError> {
    let resource = &context.resource;
    // The real server names the kind here, not the resource.
    let kind = GroupResource::new(resource.validated_group(), &resource.kind);
    let mismatch = |what: &str, wanted: &str, is: &str, happened: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have \
             been {happened}"
        );
        ApiError::conflict(&kind, object.name(), &why)
    };
    if resource.group.is_empty() && resource.plural == "namespaces" {
        return namespace_preconditions(context, options, object);
    }
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object.uid()) {
        return Err(mismatch("UID", uid, object.uid(), "deleted and then recreated"));
    }
    if let Some(version) = options
        .resource_version
        .as_deref()
        .filter(|version| *version != object.resource_version())
    {
        return Err(mismatch(
            "ResourceVersion",
            version,
            object.resource_version(),
            "modified",
        ));
    }
    Ok(())
}

/// Namespaces have a check of their own, with words of its own.
fn namespace_preconditions(
    context: &Context,
    options: &DeleteOptions,
    object: &Value,
) -> Result<(), ApiError> {
    let wanted = [
        ("UID", &options.uid, object.uid()),
        (
            "ResourceVersion",
            &options.resource_version,
            object.resource_version(),
        ),
    ];
    for (what, wanted, is) in wanted {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
            let why =
                format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}");
            return Err(ApiError::conflict(
                &context.resource.group_resource(),
                object.name(),
                &why,
            ));
        }
    }
    Ok(())
}

enum Outcome {
    /// The object is ending already, and this changes nothing.
    Unchanged,
    /// The object stays, marked for deletion.
    Mark(Value),
    /// The object goes.
    Remove(Value),
}

fn plan(context: &Context, options: &DeleteOptions, old: &Value) -> Result<Outcome, ApiError> {
    let resource = &context.resource;
    let grace = old
        .metadata()
        .and_then(|meta| meta.get("deletionGracePeriodSeconds"))
        .filter(|_| resource.strategy.ends_gracefully() && old.is_terminating())
        .and_then(Value::as_i64);
    if let Some(grace) = grace
        && options.grace_seconds.is_none_or(|seconds| seconds >= grace)
    {
        // What is ending already can only be made to end sooner.
        return Ok(Outcome::Unchanged);
    }
    let mut object = old.clone();
    if resource.strategy.has_dependents() {
        set_propagation(&mut object, propagation(resource, options, old));
    }
    let deletion = match options.grace_seconds {
        Some(seconds) if grace.is_some() && seconds != 0 => Deletion::Graceful {
            seconds: if seconds < 0 { 1 } else { seconds },
        },
        seconds => resource.strategy.deletion(old, seconds),
    };
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    if is_namespace {
        let held = at(old, "spec.finalizers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
        if old.is_terminating() && held {
            return Ok(Outcome::Unchanged);
        }
        // Also one that nobody holds is marked first, and goes when it is deleted again.
        if !old.is_terminating() {
            object["status"]["phase"] = Value::from("Terminating");
            object.set_meta("deletionTimestamp", context.state().now());
            return Ok(Outcome::Mark(object));
        }
    }
    if resource.group == "apiextensions.k8s.io" && !old.is_terminating() {
        object.add_finalizer(machinery::finalizers::DEFINITION);
        let now = context.state().now();
        if let Some(conditions) = object
            .pointer_mut("/status/conditions")
            .and_then(Value::as_array_mut)
        {
            conditions.push(json!({
                "type": "Terminating", "status": "True", "lastTransitionTime": now,
                "reason": "InstanceDeletionPending",
                "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            }));
        }
    }
    match deletion {
        Deletion::Graceful { seconds } => {
            if old.is_terminating() {
                let left = old
                    .metadata()
                    .and_then(|meta| meta.get("deletionGracePeriodSeconds"))
                    .and_then(Value::as_i64);
                if options.grace_seconds.is_none() || left.is_some_and(|left| left <= seconds) {
                    return Ok(if object == *old {
                        Outcome::Unchanged
                    } else {
                        Outcome::Mark(object)
                    });
                }
            }
            mark(context, &mut object, seconds);
            Ok(Outcome::Mark(object))
        }
        Deletion::Immediate if object.finalizers().is_empty() && resource.strategy.ends_gracefully() => {
            Ok(Outcome::Remove(object))
        }
        // It goes as it is stored: that a finalizer was taken off is never written.
        Deletion::Immediate if object.finalizers().is_empty() => Ok(Outcome::Remove(old.clone())),
        Deletion::Immediate => {
            if old.is_terminating() && object == *old && old.meta_str("deletionGracePeriodSeconds").is_empty()
            {
                let graceless = old
                    .metadata()
                    .and_then(|meta| meta.get("deletionGracePeriodSeconds"))
                    .and_then(Value::as_i64)
                    .unwrap_or(0)
                    == 0;
                if graceless {
                    return Ok(Outcome::Unchanged);
                }
            }
            mark(context, &mut object, 0);
            Ok(Outcome::Mark(object))
        }
    }
}

/// Sets the deletion's time: when the grace is over.
fn mark(context: &Context, object: &mut Value, grace_seconds: i64) {
    if context.resource.group == "apiextensions.k8s.io" && !object.is_terminating() {
        // Definitions have a way of their own to their end.
        object.set_meta("deletionTimestamp", context.state().now());
        return;
    }
    let was_terminating = object.is_terminating();
    // Shortening the grace of an object that is ending already keeps the moment at which its end began.
    let began = object
        .is_terminating()
        .then(|| beginning_of_end(object))
        .flatten();
    let now = began.unwrap_or_else(|| context.state().clock.now_seconds());
    let end = now
        .saturating_add(jiff::SignedDuration::from_secs(grace_seconds))
        .unwrap_or(now);
    object.set_meta("deletionTimestamp", rfc3339(end));
    object.set_meta("deletionGracePeriodSeconds", grace_seconds);
    if !was_terminating && object.generation() > 0 {
        object.set_meta("generation", object.generation() + 1);
    }
}

/// The propagation policy: the requested one, or else the one that a finalizer of the object implies, or else the default of
/// the resource.
fn propagation<'a>(resource: &Resource, options: &'a DeleteOptions, object: &Value) -> &'a str {
    let settled = |finalizers: &[&str]| finalizers.contains(&ORPHAN) || finalizers.contains(&FOREGROUND);
    if options.propagation.is_empty()
        && resource.strategy.orphans_by_default()
        && !settled(&object.finalizers())
    {
        return "Orphan";
    }
    &options.propagation
}

fn beginning_of_end(object: &Value) -> Option<jiff::Timestamp> {
    let end: jiff::Timestamp = object.meta_str("deletionTimestamp").parse().ok()?;
    let grace = object.metadata()?.get("deletionGracePeriodSeconds")?.as_i64()?;
    end.checked_sub(jiff::SignedDuration::from_secs(grace)).ok()
}

fn set_propagation(object: &mut Value, propagation: &str) {
    match propagation {
        "Foreground" => {
            object.remove_finalizer(ORPHAN);
            object.add_finalizer(FOREGROUND);
        }
        "Orphan" => {
            object.remove_finalizer(FOREGROUND);
            object.add_finalizer(ORPHAN);
        }
        "Background" => {
            object.remove_finalizer(FOREGROUND);
            object.remove_finalizer(ORPHAN);
        }
        _ => {}
    }
}

/// The warning for a client that leaves the propagation policy of a job's pods to the server.
fn warnings(resource: &Resource, options: &DeleteOptions) -> Vec<String> {
    let is_job = resource.table.group == "batch" && resource.table.resource == "jobs";
    if !is_job || !options.propagation.is_empty() {
        return Vec::new();
    }
    vec![
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
         propagationPolicy=Orphan to suppress this warning"
            .to_owned(),
    ]
}

fn success(context: &Context, object: &Value) -> Value {
    let resource = &context.resource;
    let mut details = details(&resource.group, &resource.plural, object.name(), &[]);
    details["uid"] = Value::from(object.uid());
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

/// Deletes every object that the selectors choose; answers with the deleted objects.
pub(crate) async fn delete_collection(context: &Context, options: &DeleteOptions) -> Result<Page, ApiError> {
    let mut page = read::list(context).await?;
    context.warnings.tell(warnings(&context.resource, options));
    for stored in &mut page.items {
        let mut request = context.request.clone();
        request.namespace = stored.key.namespace.to_string();
        request.name = stored.key.name.to_string();
        let one = Context {
            server: context.server.clone(),
            resource: context.resource.clone(),
            request,
            params: context.params.clone(),
            accepted: context.accepted,
            content_type: String::new(),
            body: Payload::default(),
            manager: context.manager.clone(),
            local: None,
            is_remote: context.is_remote,
            user: context.user.clone(),
            warnings: context.warnings.clone(),
            asked: conversion::Asked::default(),
        };
        match delete(&one, options).await {
            // Someone else deleted it: that is what was asked for.
            Err(error) if error.code == http::StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        // What was looked at for that is not needed any more.
        *stored = stored.light();
    }
    Ok(page)
}
