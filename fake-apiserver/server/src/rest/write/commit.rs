//! The last stage: the object is written, or a dry run says that it could be.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at};
use machinery::status::ApiError;
use shared_json::{Array, Map, Name, Value};
use store::{Change, ObjectKey, Stored};

use super::{Base, Present, Write};
use crate::commit_errors;
use crate::context::{Answer, Context, Shown};
use crate::conversion;
use crate::message::request::Verb;
use crate::rest::{definitions, original_body};

impl Write<'_> {
    /// Writes the object. `None` if another write came between, and this one names no version that it is based on.
    pub(super) async fn store(self) -> Result<Option<Answer>, ApiError> {
        match self.base {
            Base::New(_) => self.store_new().await.map(Some),
            Base::Present(present) => self.store_present(present).await,
        }
    }

    async fn store_new(mut self) -> Result<Answer, ApiError> {
        let (context, resource) = (self.context, &self.context.resource);
        if resource.is_custom() && resource.has_status() {
            // The status that was sent is gone; what the schema gives one is there as soon as the object is read.
            self.default();
        }
        let object = self.object;
        let object = if context.params.dry_run {
            conversion::written_and_read(context.state(), resource, object).await?
        } else {
            conversion::stored_form(context.state(), resource, object).await?
        };
        let shown = insert(context, object)?;
        if let Shown::Stored(stored) = &shown {
            conversion::ready(context.state(), resource, std::slice::from_ref(stored)).await?;
        }
        Ok(Answer::created(shown))
    }

    async fn store_present(self, present: Present<'_>) -> Result<Option<Answer>, ApiError> {
        let (context, object) = (self.context, self.object);
        let (existing, old) = (present.existing, present.old);
        let ends = ends(context, &object, old);
        if !ends && !is_stored_in_part(context, existing) && is_unchanged(&object, old) {
            return Ok(Some(Answer::ok(Shown::Stored(Arc::clone(existing)))));
        }
        if context.params.dry_run {
            let (state, resource) = (context.state(), &context.resource);
            let shown = conversion::written_and_read(state, resource, object).await?;
            return Ok(Some(Answer::ok(Shown::Made(shown))));
        }
        let written = if ends {
            // The removal writes no new version, and its event has the stored object.
            let mut shown = object;
            shown.copy_meta(old, "resourceVersion");
            replace(context, existing, existing.value.clone(), true)?.map(|_| Shown::Made(shown))
        } else {
            let stored = conversion::stored_form(context.state(), &context.resource, object).await?;
            let stored = replace(context, existing, stored, false)?;
            if let Some(stored) = &stored {
                conversion::ready(context.state(), &context.resource, std::slice::from_ref(stored)).await?;
            }
            stored.map(Shown::Stored)
        };
        match written {
            Some(shown) => Ok(Some(Answer::ok(shown))),
            None if present.is_based => Err(ApiError::modified(
                &context.resource.group_resource(),
                &context.request.name,
            )),
            None => Ok(None),
        }
    }
}

/// Whether a change takes the last finalizer of an object that is being deleted.
fn ends(context: &Context, object: &Value, old: &Value) -> bool {
    let resource = &context.resource;
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    let is_held = |object: &Value| {
        let own = object.pointer("/spec/finalizers").and_then(Value::as_array);
        !object.finalizers().is_empty() || is_namespace && own.is_some_and(|own| !own.is_empty())
    };
    let grace = object
        .metadata()
        .and_then(|meta| meta.get("deletionGracePeriodSeconds"))
        .and_then(Value::as_i64);
    object.is_terminating() && is_held(old) && !is_held(object) && grace.unwrap_or(0) == 0
}

/// Writes the new object, which has the form for the store; or only says whether it could be written, of a dry run.
fn insert(context: &Context, object: Value) -> Result<Shown, ApiError> {
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
    let defined = object.clone();
    let stored = state
        .store
        .commit(context.table(), &key, None, Change::Put(object))
        .map_err(|error| {
            let refusal = commit_errors::refusal(error);
            if defines && refusal.is_some() {
                state.registry.undefine(&definitions::defined_table(&defined));
            }
            refusal.unwrap_or_else(exists)
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

/// Writes the new version of an object, or removes it if it `ends`; `None` if another write came between.
pub(in crate::rest) fn replace(
    context: &Context,
    existing: &Arc<Stored>,
    object: Value,
    ends: bool,
) -> Result<Option<Arc<Stored>>, ApiError> {
    let state = context.state();
    if context.resource.group == "apiextensions.k8s.io" {
        if ends {
            state.registry.undefine(&definitions::defined_table(&object));
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
        Err(error) => match commit_errors::refusal(error) {
            Some(refusal) => {
                if context.resource.group == "apiextensions.k8s.io" {
                    // It was read when it was written.
                    let _defined = state.registry.define(&existing.value, state.store.revision());
                }
                return Err(refusal);
            }
            None => None,
        },
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

/// Whether the real server has stored less of an object than it shows, so that the next write is one whatever it says: a new claim
/// without its phase.
fn is_stored_in_part(context: &Context, existing: &Stored) -> bool {
    let is_claim = context.resource.group.is_empty() && context.resource.plural == "persistentvolumeclaims";
    is_claim && existing.created == existing.revision
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
    let same_meta = |a: &Map, b: &Map| {
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
