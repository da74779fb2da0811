//! The two requests that ownership knows: an apply, and any other write.

use super::compare::{Comparison, compare};
use super::error::{ApplyError, Conflict};
use super::field_set::FieldSet;
use super::managed::{Managed, Manager, Owned};
use super::memo::Spans;
use super::types::{Type, same};
use super::versions::{Changes, Versions, Views};
use super::{check, last_applied, memo, merge, owners, to_set};
use crate::types::Schema;
use shared_json::{Array, Map, Value, json};
use std::cell::RefCell;
use std::sync::LazyLock;

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The properties of a write, apart from its object.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    /// The `fieldManager`; empty counts as `unknown`.
    pub manager: &'a str,
    /// The API version written in: `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to (`status`, `scale`); empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write: RFC 3339, in whole seconds, in UTC.
    pub now: &'a str,
    /// The fields that a write through this resource or subresource cannot change, and so never owns: `status` for the object,
    /// `spec` for `status`. Fields below them count too.
    pub reset_fields: &'a FieldSet,
    /// How owners in other versions see the object; without it they are taken to be of this one.
    pub versions: Option<&'a dyn Versions>,
}

impl Operation<'_> {
    fn owner(&self, applies: bool) -> Manager {
        Manager::new(self.manager, applies, self.api_version, self.subresource)
    }
}

/// Merges an applied configuration into the live object and returns the merged object with its `managedFields`.
///
/// Without a live object this is a create. The result is not yet defaulted, and may hold nulls where the last field of a part
/// was removed: for built-in types canonicalize and default it, for custom resources default it (which drops such nulls).
/// Fields that this manager applied before, does not apply now, and no other manager owns are removed. With `force`, fields are
/// taken from their owners instead of failing with [`ApplyError::Conflict`]. When nothing changes, the live object comes back,
/// with its times.
///
/// ```
/// use machinery::patch::apply::{FieldSet, Operation, apply};
/// use shared_json::json;
/// let schema = machinery::types::builtin(("", "v1", "ConfigMap")).unwrap();
/// let reset_fields = FieldSet::default();
/// let operation = Operation {
///     manager: "me", api_version: "v1", subresource: "", now: "2026-01-01T00:00:00Z", reset_fields: &reset_fields,
///     versions: None,
/// };
/// let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
/// let object = apply(&schema, None, &applied, false, &operation).unwrap();
/// assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:k": {}}}));
/// ```
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    operation: &Operation<'_>,
) -> Result<Value, ApplyError> {
    let of = Type::Known(schema, false);
    let views = Views::new(schema, operation);
    let version = applied
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if version != operation.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            operation.api_version
        )));
    }
    if applied
        .pointer("/metadata/managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    if let Some(errors) = joined(check::check(of, applied)) {
        let place = describe(applied);
        return Err(ApplyError::Typed(format!(
            "failed to create typed patch object ({place}): {errors}"
        )));
    }
    let empty = schema.empty_object();
    let mut live = live.unwrap_or(&empty).clone();
    let mut managed = Managed::decode(take_entries(&mut live).as_ref())
        .map_err(|error| ApplyError::Typed(format!("failed to decode managed fields: {error}")))?;
    owners::reconcile(&views, &live, &mut managed).map_err(ApplyError::Typed)?;
    if managed.0.is_empty() {
        // Whatever is there was there before anybody was recorded.
        let before = Operation {
            manager: BEFORE_FIRST_APPLY,
            ..*operation
        };
        let changes = changes(of, &empty, &live, &before);
        let changes = Changes::new(
            &views,
            (&empty, &live),
            changes,
            &mut managed,
            (None, before.reset_fields),
        );
        record(changes.map_err(ApplyError::Typed)?, &mut managed, &before);
    }
    owners::forget_unconvertible(&mut managed, operation.api_version);
    let mut force = force;
    loop {
        match merge_owned(&views, &live, applied, &managed, force, operation) {
            Ok((object, managed)) => return Ok(finish(&live, object, managed, applied, operation)),
            Err(ApplyError::Conflict(conflicts)) => {
                let left = match operation.manager == last_applied::KUBECTL {
                    true => last_applied::unsettled(of, &live, operation.api_version, conflicts),
                    false => conflicts,
                };
                if !left.is_empty() {
                    return Err(ApplyError::Conflict(left));
                }
                force = true;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The merged object, if it differs from the live one, and the owners; or the conflicts.
fn merge_owned(
    views: &Views<'_>,
    live: &Value,
    applied: &Value,
    managed: &Managed,
    force: bool,
    operation: &Operation<'_>,
) -> Result<(Option<Value>, Managed), ApplyError> {
    let of = Type::Known(views.schema, false);
    let mut managed = managed.clone();
    let actor = operation.owner(true);
    let merged = merge::merge(of, Some(live), Some(applied)).unwrap_or_default();
    let fields = to_set::to_field_set(of, applied).recursive_difference(operation.reset_fields);
    let last = managed.0.remove(&actor);
    let time = last.as_ref().and_then(|last| last.time.clone());
    managed.0.insert(
        actor.clone(),
        Owned {
            fields,
            version: operation.api_version.into(),
            time,
            read: None,
        },
    );
    let object = owners::prune(views, merged, &managed, last.as_ref()).map_err(ApplyError::Typed)?;
    let changes = changes(of, live, &object, operation);
    let but = (Some(&actor), operation.reset_fields);
    let changes =
        Changes::new(views, (live, &object), changes, &mut managed, but).map_err(ApplyError::Typed)?;
    if !force {
        let mut lost = owners::conflicts(&managed, &changes, &actor);
        lost.sort_by_cached_key(|(manager, _)| manager.sort_key());
        let conflicts: Vec<Conflict> = lost
            .into_iter()
            .flat_map(|(manager, fields)| {
                let paths = fields.paths();
                paths.into_iter().map(move |path| Conflict {
                    manager: manager.clone(),
                    path,
                })
            })
            .collect();
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflict(conflicts));
        }
    }
    owners::take(&mut managed, &changes, Some(&actor));
    let changed = !same(live, &object);
    if changed && let Some(owned) = managed.0.get_mut(&actor) {
        owned.time = Some(operation.now.into());
    }
    if let Some(owned) = managed.0.get_mut(&actor) {
        owned.fields = std::mem::take(&mut owned.fields).difference(owners::stripped());
        if owned.fields.is_empty() {
            managed.0.remove(&actor);
        }
    }
    Ok((changed.then_some(object), managed))
}

fn finish(
    live: &Value,
    object: Option<Value>,
    managed: Managed,
    applied: &Value,
    operation: &Operation<'_>,
) -> Value {
    let mut object = object.unwrap_or_else(|| live.clone());
    if operation.manager == last_applied::KUBECTL {
        last_applied::refresh(&mut object, applied);
    }
    set_entries(&mut object, &managed);
    object
}

/// Updates `new.metadata.managedFields` for a create (no `old`), update or patch that is not an apply.
///
/// The owners are those that the request gives in `new`, if any can be read, otherwise those of `old`; on a subresource always
/// those of `old`. A request that gives one empty entry or an empty list starts the record anew. Every changed or added field
/// goes to this manager; an object without any owners stays without, unless it is created.
///
/// Both values are of one version and, for built-in types, canonical and defaulted: the form in the store.
pub fn track_update(schema: &Schema, old: Option<&Value>, new: &mut Value, operation: &Operation<'_>) {
    let of = Type::Known(schema, false);
    let empty;
    let creates = old.is_none();
    let old = match old {
        Some(old) => old,
        None => {
            empty = empty_object(schema);
            &empty
        }
    };
    let old_entries = old
        .pointer("/metadata/managedFields")
        .filter(|entries| !entries.is_null());
    let new_entries = take_entries(new);
    let given = match operation.subresource {
        "" => new_entries.as_ref(),
        _ => None,
    };
    let reset = given.is_some_and(is_reset);
    let changes = changes(of, old, new, operation);
    // The usual write repeats the entries that it read, or none; then nothing changes for anybody if nothing changed.
    let all_stay = !owners::has_unconvertible(old_entries, operation.api_version);
    if changes.is_same() && all_stay && !reset && (given.is_none() || given == old_entries) {
        if let Some(entries) = old_entries {
            insert_entries(new, entries.clone());
        }
        return;
    }
    let decode = |entries: Option<&Value>| Managed::decode(entries).unwrap_or_default();
    let mut managed = match (reset, Managed::decode(given)) {
        (true, _) => Managed::default(),
        (false, Ok(given)) if !given.0.is_empty() => given,
        _ => decode(old_entries),
    };
    if managed.0.is_empty() && !creates {
        set_entries(new, &managed);
        return;
    }
    owners::forget_unconvertible(&mut managed, operation.api_version);
    let views = Views::new(schema, operation);
    let recorded = owners::reconcile(&views, old, &mut managed).and_then(|()| {
        let changes = Changes::new(
            &views,
            (old, new),
            changes,
            &mut managed,
            (None, operation.reset_fields),
        )?;
        record(changes, &mut managed, operation);
        Ok(())
    });
    // Where owners cannot be kept, a write goes on without any.
    if recorded.is_err() {
        return;
    }
    managed.cap();
    set_entries(new, &managed);
}

/// An object of a type in which nothing is said.
fn empty_object(schema: &Schema) -> Value {
    thread_local! {
        static KNOWN: RefCell<Spans<usize, Value>> = const { RefCell::new(Spans::new(256)) };
    }
    // As traces, only those of built-in kinds are known by where they are.
    if schema.name.is_none() {
        return schema.empty_object();
    }
    let at = std::ptr::from_ref(schema).addr();
    let known = KNOWN.with_borrow_mut(|known| known.get(&at).cloned());
    known.unwrap_or_else(|| {
        let empty = schema.empty_object();
        KNOWN.with_borrow_mut(|known| known.put(at, empty.clone()));
        empty
    })
}

/// The changes of a write, `managedFields` aside.
fn changes(of: Type<'_>, old: &Value, new: &Value, operation: &Operation<'_>) -> Comparison {
    compare(of, old, new)
        .without(operation.reset_fields)
        .without(&MANAGED_FIELDS)
}

pub(super) static MANAGED_FIELDS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(&[&["metadata", "managedFields"]]));

/// Moves the changed fields to the operation's owner.
fn record(changes: Changes, managed: &mut Managed, operation: &Operation<'_>) {
    owners::take(managed, &changes, None);
    let fields = memo::union(changes.own.modified, &changes.own.added);
    let fields = memo::difference(fields, owners::stripped());
    if fields.is_empty() {
        return;
    }
    let owner = operation.owner(false);
    let fields = match managed.0.remove(&owner) {
        Some(before) => memo::union(before.fields, &fields),
        None => fields,
    };
    managed.0.insert(
        owner,
        Owned {
            fields,
            version: operation.api_version.into(),
            time: Some(operation.now.into()),
            read: None,
        },
    );
}

/// Gives the entries of `new` the times of `old` if nothing else differs between the two objects, so that a write that changes
/// nothing stores nothing, as the real server has it.
///
/// True if that made the objects equal.
pub fn keep_times(old: &Value, new: &mut Value) -> bool {
    if old == new {
        return true;
    }
    let entries = |object: &Value| {
        object
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .cloned()
    };
    let (Some(before), Some(after)) = (entries(old), entries(new)) else {
        return false;
    };
    let timeless = |entries: &[Value]| -> Vec<Value> {
        let mut entries = entries.to_vec();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries.sort_by_cached_key(Value::to_string);
        entries
    };
    if timeless(&before) != timeless(&after) || without_entries(old) != without_entries(new) {
        return false;
    }
    insert_entries(new, Value::Array(before));
    true
}

/// An object with a configuration merged into it, without owners. Parts of a list or an object that the configuration does not
/// name stay.
///
/// # Errors
/// A part of the configuration that is not of the type, or that would merge into an atomic part.
pub fn merged(schema: &Schema, live: &Value, applied: &Value) -> Result<Value, String> {
    let of = Type::Known(schema, false);
    if let Some(problems) = joined(check::check(of, applied)) {
        return Err(format!(
            "failed to convert patch object to typed object: {problems}"
        ));
    }
    let whole = check::atomics(of, applied);
    if !whole.is_empty() {
        let whole = whole.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {whole}"
        ));
    }
    Ok(merge::merge(of, Some(live), Some(applied)).unwrap_or_default())
}

/// Entries of `managedFields` in the order in which they are written.
pub fn sorted(entries: &Value) -> Value {
    Managed::decode(Some(entries)).map_or_else(|_| entries.clone(), |managed| managed.encode())
}

/// An empty list, or one empty entry.
fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Array::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn take_entries(object: &mut Value) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata
        .remove("managedFields")
        .filter(|entries| !entries.is_null())
}

fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    take_entries(&mut object);
    object
}

fn set_entries(object: &mut Value, managed: &Managed) {
    if !managed.0.is_empty() {
        insert_entries(object, managed.encode());
    }
}

fn insert_entries(object: &mut Value, entries: Value) {
    if let Some(object) = object.as_object_mut()
        && let Some(metadata) = object
            .entry("metadata")
            .or_insert_with(|| json!({}))
            .as_object_mut()
    {
        metadata.insert("managedFields", entries);
    }
}

/// `<namespace>/<name>; <group>/<version>, Kind=<kind>`, as errors name the configuration.
fn describe(applied: &Value) -> String {
    let text = |path: &str| applied.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}

pub(super) fn joined(errors: Vec<String>) -> Option<String> {
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}
