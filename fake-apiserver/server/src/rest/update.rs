//! Update: put, and the stages that patches and subresources share with it.

use std::sync::Arc;

use http::StatusCode;
use machinery::meta::{ObjectMeta, at};
use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use rules::strategy::{disabled, keep_all_but, resource_claim, signing, storage};
use rules::validation;
use rules::validation::metadata;
use shared_json::{Array, Name, Value};
use store::{Change, CommitError, Stored};

use super::context::{Answer, Context, Shown};
use super::create::{check_namespace, create_shaped};
use super::original_body::{self, Sent};
use super::ownership::{Ownership, own};
use super::{conversion, definitions, device_taints, incoming, scale, schema_rules, services};
use crate::admission::{self, Attributes, Operation};
use crate::authz;
use crate::message::params::unparsed;
use crate::message::payload::Payload;
use crate::message::request::Verb;

/// How often a write that does not depend on a version is tried again when another one came between.
const CONFLICT_RETRIES_MAX: usize = 5;

/// A change of one object.
pub(crate) struct Update<'a> {
    /// Gives the new object, in the request's version, from the present one.
    pub make: &'a (dyn Fn(&Value) -> Result<Value, ApiError> + Sync),
    /// Gives the new object before it was brought into shape.
    pub sent: Sent<'a>,
    /// Whether the new object brings its own managed fields (server-side apply) or they are derived from the change.
    pub ownership: Ownership,
    /// Whether a missing resource version means "whatever is there" also where the resource forbids that (patches).
    pub unconditional: bool,
    /// Whether admission has judged the request, so that it need not judge the writes that follow from it.
    pub judged: bool,
}

/// Put: replaces the object that the path names with the one that was sent.
pub(crate) async fn put(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let (mut object, warnings) = incoming::read(context, body)?;
    context.warnings.tell(warnings);
    check_namespace(context, &mut object)?;
    check_name(context, &object)?;
    let missing = context
        .state()
        .store
        .get(context.table(), &context.key())
        .is_none();
    if missing
        && context.resource.strategy.allows_create_on_update()
        && (context.request.subresource.is_empty() || is_service_status(context))
    {
        crate::authz::check_create(context)?;
        if !object.uid().is_empty() {
            return Err(another_uid(context, object.uid(), ""));
        }
        // Whichever version it should be based on: there is none.
        object.metadata_mut().remove("resourceVersion");
        return create_shaped(context, object, Ownership::Tracked, &|_| {
            original_body::in_body(context)
        })
        .await;
    }
    let make = |_: &Value| Ok(object.clone());
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

/// Whether a service's status is written: where there is no service that makes one, without an address.
pub(super) fn is_service_status(context: &Context) -> bool {
    let resource = &context.resource;
    resource.group.is_empty() && resource.plural == "services" && context.request.subresource == "status"
}

/// The names of path and object must agree.
pub(crate) fn check_name(context: &Context, object: &Value) -> Result<(), ApiError> {
    let (name, wanted) = (object.name(), &context.request.name);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != wanted {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({wanted})"
        )));
    }
    Ok(())
}

/// Applies a change to the object that the path names.
pub(crate) async fn update(context: &Context, change: &Update<'_>) -> Result<Answer, ApiError> {
    for _ in 0..CONFLICT_RETRIES_MAX {
        let existing = context.existing()?;
        if let Some(answer) = attempt(context, change, &existing).await? {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(
        &context.resource.group_resource(),
        &context.request.name,
    ))
}

/// One try; `None` if another write came between and the change has no resource version.
async fn attempt(
    context: &Context,
    change: &Update<'_>,
    existing: &Arc<Stored>,
) -> Result<Option<Answer>, ApiError> {
    let resource = &context.resource;
    conversion::ready(context.state(), resource, std::slice::from_ref(existing)).await?;
    let old = conversion::seen_from_storage(resource, &existing.value);
    let old: &Value = &old;
    let mut object = loop {
        let made = (change.make)(old);
        // What owners in other versions see may have to be asked for.
        if !conversion::asks(resource) || !conversion::ask(context).await {
            break made?;
        }
    };
    let based_on = check_preconditions(context, change, &object, old)?;
    keep_system_metadata(&mut object, old, context.params.dry_run);
    context.warnings.tell(metadata::dedup_owners(&mut object));
    resource.strategy.normalize(&mut object);
    device_taints::stamp(context, &mut object);
    if change.ownership == Ownership::Tracked {
        own(context, Some(old), &mut object).await;
    }
    keep_end(&mut object, old);
    let mut attributes = Attributes {
        user: context.user.clone(),
        operation: Operation::Update,
        resource: resource.clone(),
        subresource: context.request.subresource.clone(),
        namespace: context.request.namespace.clone(),
        name: context.request.name.clone(),
        object: None,
        old: None,
        dry_run: context.params.dry_run,
        // A patch is an update by then.
        options: admission::options(&context.params, "UpdateOptions"),
        warnings: context.warnings.clone(),
    };
    // Most writes concern no webhook: for them nothing is copied.
    let before = admission::is_concerned(&context.server, &attributes).then(|| object.clone());
    // Who judges the change of a scale sees scales.
    let scaled = context.request.subresource == "scale";
    let mut admitted = if change.judged {
        object
    } else if scaled {
        attributes.old = Some(scale::of(context, old));
        attributes.object = Some(scale::of(context, &object));
        admission::mutate(&context.server, &mut attributes).await?;
        scale::validate(context, attributes.object.as_ref().unwrap_or(old))?;
        scale::take(context, &mut object, attributes.object.as_ref().unwrap_or(old));
        object
    } else {
        attributes.old = before.as_ref().map(|_| old.clone());
        attributes.object = Some(object);
        admission::mutate(&context.server, &mut attributes).await?;
        attributes.object.take().unwrap_or_default()
    };
    // What admission changed has no owner.
    if before.is_some_and(|before| before != admitted) {
        check_namespace(context, &mut admitted)?;
        check_version(context, change, &admitted, old)?;
        keep_system_metadata(&mut admitted, old, context.params.dry_run);
        keep_end(&mut admitted, old);
        if let Some(schema) = resource.schema() {
            schema.default(&mut admitted);
        }
    }
    authz::escalation::check(context, &admitted, Some(old))?;
    services::give(context, &mut admitted, Some(old))?;
    prepare(context, change.sent, &mut admitted, old);
    context.warnings.tell(validate(context, change, &admitted, old)?);
    if context.request.subresource.is_empty() && resource.is_custom() {
        context
            .warnings
            .tell(metadata::finalizer_warnings(&admitted, Some(old)));
    } else if context.request.subresource.is_empty() {
        context
            .warnings
            .tell(validation::warnings(context.table(), &admitted, Some(old)));
    }
    services::settle(context, &mut admitted);
    if is_labelled_as_template(context)
        && admitted
            .metadata()
            .is_some_and(|meta| !meta.contains_key("labels"))
        && let Some(schema) = resource.schema()
    {
        // What the store gives back is defaulted once more.
        schema.default(&mut admitted);
    }
    let admitted = if change.judged {
        admitted
    } else if scaled {
        admission::validate(&context.server, &mut attributes).await?;
        admitted
    } else {
        attributes.object = Some(admitted);
        admission::validate(&context.server, &mut attributes).await?;
        attributes.object.take().unwrap_or_default()
    };

    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    let held = |object: &Value| {
        let own = object.pointer("/spec/finalizers").and_then(Value::as_array);
        !object.finalizers().is_empty() || is_namespace && own.is_some_and(|own| !own.is_empty())
    };
    let ends = admitted.is_terminating()
        && held(old)
        && !held(&admitted)
        && admitted
            .metadata()
            .and_then(|meta| meta.get("deletionGracePeriodSeconds"))
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0;
    if !ends && !is_stored_in_part(context, existing) && is_unchanged(&admitted, old) {
        return Ok(Some(Answer {
            code: StatusCode::OK,
            object: Shown::Stored(Arc::clone(existing)),
        }));
    }
    if context.params.dry_run {
        return Ok(Some(Answer {
            code: StatusCode::OK,
            object: Shown::Made(admitted),
        }));
    }
    if ends {
        return end(context, existing, admitted, old, based_on);
    }
    let stored = conversion::stored_form(context.state(), resource, admitted).await?;
    match commit(context, existing, stored, false)? {
        Some(stored) => {
            conversion::ready(context.state(), resource, std::slice::from_ref(&stored)).await?;
            Ok(Some(Answer {
                code: StatusCode::OK,
                object: Shown::Stored(stored),
            }))
        }
        None if based_on => Err(ApiError::modified(
            &resource.group_resource(),
            &context.request.name,
        )),
        None => Ok(None),
    }
}

/// Removes an object whose last finalizer is gone. The removal writes no new version of it, and its last event has
/// the stored object.
fn end(
    context: &Context,
    existing: &Arc<Stored>,
    mut shown: Value,
    old: &Value,
    based_on: bool,
) -> Result<Option<Answer>, ApiError> {
    shown.copy_meta(old, "resourceVersion");
    match commit(context, existing, existing.value.clone(), true)? {
        Some(_) => Ok(Some(Answer {
            code: StatusCode::OK,
            object: Shown::Made(shown),
        })),
        None if based_on => Err(ApiError::modified(
            &context.resource.group_resource(),
            &context.request.name,
        )),
        None => Ok(None),
    }
}

/// Writes the new version; `None` if another one came between.
pub(crate) fn commit(
    context: &Context,
    existing: &Arc<Stored>,
    object: Value,
    ends: bool,
) -> Result<Option<Arc<Stored>>, ApiError> {
    let state = context.state();
    if context.resource.group == "apiextensions.k8s.io" {
        if ends {
            state.registry.undefine(&super::delete::defined_table(&object));
        } else {
            state
                .registry
                .define(&object, state.store.revision())
                .map_err(|errors| {
                    ApiError::invalid(
                        &context.resource.group,
                        &context.resource.kind,
                        object.name(),
                        &errors,
                    )
                })?;
        }
    }
    let change = if ends {
        Change::Delete(object)
    } else {
        Change::Put(object)
    };
    let before = Some(existing.revision);
    let committed = match state.store.commit(context.table(), &existing.key, before, change) {
        Ok(stored) => Some(stored),
        Err(CommitError::Stale) => None,
        Err(CommitError::TooLarge) => return Err(ApiError::too_large_to_store()),
    };
    if let Some(stored) = committed.as_ref().filter(|_| !ends) {
        state.expiry.note(context.table(), stored, state.clock.now());
    }
    if context.resource.group == "apiextensions.k8s.io" {
        let group = at(&existing.value, "spec.group").and_then(Value::as_str);
        definitions::settle(state, group.unwrap_or_default());
    }
    Ok(committed)
}

/// Whether the change names the version it is based on. An error if it is of another object than the present one.
fn check_preconditions(
    context: &Context,
    change: &Update<'_>,
    object: &Value,
    old: &Value,
) -> Result<bool, ApiError> {
    // A patch that names another uid is refused by the validation of metadata instead.
    if !change.unconditional && !object.uid().is_empty() && object.uid() != old.uid() {
        return Err(another_uid(context, object.uid(), old.uid()));
    }
    check_version(context, change, object, old)
}

/// Whether the change names the version it is based on. An error if that is not the present one.
fn check_version(
    context: &Context,
    change: &Update<'_>,
    object: &Value,
    old: &Value,
) -> Result<bool, ApiError> {
    let resource = &context.resource;
    let name = &context.request.name;
    let given = object.resource_version();
    if given.is_empty() || given == "0" {
        // A patch is of the present object, and has its version unless it takes that away.
        let must_say = !change.unconditional || context.request.verb == Verb::Patch;
        if must_say && !resource.strategy.allows_unconditional_update() {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid(
                &resource.group,
                &resource.plural,
                name,
                &[error],
            ));
        }
        return Ok(false);
    }
    if given.parse::<u64>().is_err() {
        let message = unparsed("ParseUint", given);
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    if given != old.resource_version() {
        return Err(ApiError::modified(&resource.group_resource(), name));
    }
    // A patch carries the version of the object it was applied to, which is no condition of the client's.
    Ok(!change.unconditional)
}

/// The conflict of a write that names another uid than that of the object; empty for one that is not there.
pub(super) fn another_uid(context: &Context, given: &str, present: &str) -> ApiError {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {given}, UID in object meta: {present}",
        registry_key(context)
    );
    ApiError::conflict(&context.resource.group_resource(), &context.request.name, &why)
}

/// The object's key in the real server's store, which some of its errors quote.
pub(super) fn registry_key(context: &Context) -> String {
    let resource = &context.resource;
    let group = if resource.is_custom() {
        format!("{}/", resource.group)
    } else {
        String::new()
    };
    // Some resources are kept by the names that they had first.
    let plural = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            "apiextensions.k8s.io/customresourcedefinitions"
        }
        ("apiregistration.k8s.io", "apiservices") => "apiregistration.k8s.io/apiservices",
        (_, plural) => plural,
    };
    // What a dry run asks never gets as far as the store, which puts the first part before it.
    let root = if context.params.dry_run { "" } else { "/registry" };
    format!("{root}/{group}{plural}/{}", context.key())
}

/// The fields that the server alone writes stay as they were, unless the client changes them and is refused for it.
fn keep_system_metadata(object: &mut Value, old: &Value, dry_run: bool) {
    for field in ["uid", "selfLink", "deletionGracePeriodSeconds"] {
        let absent = object
            .metadata()
            .and_then(|meta| meta.get(field))
            .is_none_or(Value::is_null);
        if absent {
            object.copy_meta(old, field);
        }
    }
    // What the store does not keep is no change, and a dry run does not ask it.
    if !dry_run {
        object.metadata_mut().remove("selfLink");
    }
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        object.copy_meta(old, field);
    }
}

/// The deletion time of an object stays. A writer that sent another one owns the field all the same.
fn keep_end(object: &mut Value, old: &Value) {
    if old.is_terminating() {
        object.copy_meta(old, "deletionTimestamp");
    }
}

fn prepare(context: &Context, sent: Sent<'_>, object: &mut Value, old: &Value) {
    let strategy = context.resource.strategy;
    match context.request.subresource.as_str() {
        "" if context.resource.has_status() || !context.resource.is_custom() => {
            strategy.prepare_update(object, old);
        }
        "status" => strategy.prepare_status_update(object, old),
        "approval" => signing::keep_conditions(object, old),
        part @ ("ephemeralcontainers" | "resize") => keep_all_but(part, object, old),
        _ => {}
    }
    if context.table().resource == "certificatesigningrequests" && !context.request.subresource.is_empty() {
        signing::stamp(object, old, &context.state().now());
    }
    if context.table().resource == "resourceclaims" && context.request.subresource == "status" {
        resource_claim::drop_freed(object, old);
    }
    if context.table().resource == "persistentvolumes" && context.request.subresource == "status" {
        storage::stamp_phase(object, &context.state().now());
    }
    if context.request.subresource == "status" && !context.resource.is_custom() {
        disabled::drop_of_status(context.table(), object, Some(old));
    }
    // Endpoint slices are compared before what they may no longer say is taken out.
    let before_drop =
        context.table().resource == "endpointslices" && strategy.changes_generation(object, old);
    if context.request.subresource.is_empty() && !context.resource.is_custom() {
        disabled::drop(context.table(), object, Some(old));
    }
    let changes = || {
        before_drop
            || strategy.changes_generation(object, old)
            || strategy.counts_empty()
                && original_body::says_empty(&context.resource, sent(Some(old)).as_ref())
    };
    if context.request.subresource != "status" && changes() {
        object.set_meta("generation", old.generation() + 1);
    }
}

/// Warnings, if the object is valid.
fn validate(
    context: &Context,
    change: &Update<'_>,
    object: &Value,
    old: &Value,
) -> Result<Vec<String>, ApiError> {
    let resource = &context.resource;
    // Where a pod goes is written without another look at it.
    if context.request.subresource == "binding" {
        return Ok(Vec::new());
    }
    let mut errors = authz::devices::status(context, object, old);
    errors.extend(metadata::validate_update(
        resource.of_metadata(),
        &context.request.subresource,
        object,
        old,
    ));
    let subresource = context.request.subresource.as_str();
    let (mut complaints, warnings) = schema_rules::check(resource, subresource, (object, Some(old)), &errors);
    if resource.is_custom() && subresource == "status" {
        complaints = schema_rules::of_status(complaints);
    }
    errors.extend(complaints);
    if resource.is_custom() {
        if subresource.is_empty() {
            errors.extend(resource.strategy.validate_update(object, old));
        }
    } else {
        let before = conversion::validated(resource, old);
        let check = |object: &Value| {
            let mut errors = match subresource {
                "" => resource.strategy.validate_update(object, old),
                _ => Vec::new(),
            };
            let object = conversion::validated(resource, object);
            errors.extend(validation::update(context.table(), subresource, &object, &before));
            errors
        };
        errors.extend(original_body::check_as_sent(
            resource,
            object,
            || (change.sent)(Some(old)),
            check,
        ));
        errors.extend(metadata::validate_last(resource.of_metadata(), object, old));
    }
    if context.table().resource == "controllerrevisions" && errors.iter().all(|error| error.path != "data") {
        errors.extend(changed_bytes(context, object, old));
    }
    if errors.is_empty() {
        return Ok(warnings);
    }
    // What was so before is told beside what is refused.
    context.warnings.tell(warnings);
    original_body::show_empty(&mut errors, resource.schema().as_deref(), || {
        (change.sent)(Some(old))
    });
    Err(ApiError::invalid(
        resource.validated_group(),
        &resource.kind,
        object.name(),
        &errors,
    ))
}

/// The data of a ControllerRevision is compared byte for byte. Only a put brings bytes of its own; the result of a patch is
/// written anew.
fn changed_bytes(context: &Context, object: &Value, old: &Value) -> Option<FieldError> {
    let data = object.get("data")?;
    let others = |object: &Value| {
        let mut object = object.clone();
        object.metadata_mut().remove("managedFields");
        object
    };
    // An apply that changes nothing leaves all as it is.
    if context.content_type.starts_with("application/apply-patch") && others(object) == others(old) {
        return None;
    }
    let is_put = context.request.verb == Verb::Update;
    let written = is_put.then(|| original_body::revision_data(context)).flatten();
    let differs = written != context.state().revisions.data(old.uid());
    differs.then(|| FieldError::invalid("data", data.clone(), "field is immutable"))
}

/// Whether the real server has stored less of an object than it shows, so that the next write is one whatever it says: a new claim
/// without its phase.
fn is_stored_in_part(context: &Context, existing: &Stored) -> bool {
    let is_claim = context.resource.group.is_empty() && context.resource.plural == "persistentvolumeclaims";
    is_claim && existing.created == existing.revision
}

/// Whether an object without labels has those of its template.
fn is_labelled_as_template(context: &Context) -> bool {
    let resource = &context.resource;
    let names = (resource.group.as_str(), resource.plural.as_str());
    !resource.is_custom() && matches!(names, ("", "replicationcontrollers") | ("batch", "jobs"))
}

/// Whether a write would change nothing but the times of managed fields: then it is not written.
fn is_unchanged(object: &Value, old: &Value) -> bool {
    fn entries(object: &Value) -> &[Value] {
        let entries = object.metadata().and_then(|meta| meta.get("managedFields"));
        entries.and_then(Value::as_array).map_or(&[], Array::as_slice)
    }
    fn timeless(entry: &Value) -> impl Iterator<Item = (&Name, &Value)> {
        entry
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(field, _)| *field != "time")
    }
    let (Some(new_map), Some(old_map)) = (object.as_object(), old.as_object()) else {
        return false;
    };
    let same_parts = new_map.len() == old_map.len()
        && new_map
            .iter()
            .all(|(key, value)| key == "metadata" || old_map.get(key) == Some(value));
    let (Some(new_meta), Some(old_meta)) = (object.metadata(), old.metadata()) else {
        return same_parts;
    };
    let ignored = |key: &str| key == "managedFields" || key == "resourceVersion";
    let same_meta = |a: &shared_json::Map, b: &shared_json::Map| {
        a.iter()
            .filter(|(key, _)| !ignored(key))
            .all(|(key, value)| b.get(key) == Some(value))
    };
    same_parts
        && same_meta(new_meta, old_meta)
        && same_meta(old_meta, new_meta)
        && entries(object).len() == entries(old).len()
        && std::iter::zip(entries(object), entries(old)).all(|(new, old)| timeless(new).eq(timeless(old)))
}
