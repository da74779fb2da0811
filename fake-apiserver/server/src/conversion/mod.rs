//! Between the versions of one resource.
//!
//! An object is stored in one version and shown in the one that was asked for. Most resources have one version; custom
//! ones without a webhook ([`webhook`]) differ in `apiVersion` alone; events are renamed field by field, autoscalers ([`autoscalers`])
//! carry in annotations the fields that the old version lacks.

mod asked;
mod autoscalers;
mod webhook;

use std::borrow::Cow;

use machinery::meta::ObjectMeta;
use shared_json::{Map, Value, json};
use store::Revision;

use crate::resources::Resource;
pub(crate) use asked::{Asked, ask, asks};
pub(crate) use webhook::{between, ready, stored_form, written_and_read};

/// The stored object as `resource` shows it.
pub(crate) fn from_storage(resource: &Resource, mut object: Value) -> Value {
    let api_version = resource.api_version();
    if let Some(custom) = &resource.custom {
        if api_version == resource.storage_api_version && !is_stale(resource, &object) {
            return object;
        }
        let is_other = object.get("apiVersion").and_then(Value::as_str) != Some(&api_version);
        if let Some(stored) = custom.stored.as_ref().filter(|_| is_other) {
            stored.prune(&mut object);
            stored.default(&mut object);
        }
        if let Some(converted) = custom
            .hook
            .as_ref()
            .filter(|_| is_other)
            .and_then(|hook| hook.answer(&object))
        {
            object = converted;
        }
        // What is read is defaulted as what it is stored as, and pruned as what it is shown as.
        let stored = custom.stored.as_ref().filter(|_| is_other);
        object["apiVersion"] = Value::from(api_version);
        custom.schema.prune(&mut object);
        if stored.is_none() {
            custom.schema.default(&mut object);
        }
        return object;
    }
    if api_version == resource.storage_api_version {
        return object;
    }
    match resource.group.as_str() {
        "events.k8s.io" => rename(&mut object, |new, old| (old, new)),
        "autoscaling" => autoscalers::to_v1(&mut object),
        _ => {}
    }
    object["apiVersion"] = Value::from(api_version);
    object
}

/// Whether the object was written before the last change of its kind's schema.
fn is_stale(resource: &Resource, object: &Value) -> bool {
    let since = resource.custom.as_ref().map_or(0, |custom| custom.since.0);
    since > 0
        && object
            .resource_version()
            .parse()
            .is_ok_and(|version: u64| version <= since)
}

/// Whether stored objects of this revision are shown as they are.
pub(crate) fn is_plain(resource: &Resource, revision: Revision) -> bool {
    resource.is_storage_version()
        && resource
            .custom
            .as_ref()
            .is_none_or(|custom| custom.since < revision)
}

/// The same for an object that is only read: nothing is copied where nothing differs.
pub(crate) fn seen_from_storage<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.is_storage_version() && !is_stale(resource, object) {
        Cow::Borrowed(object)
    } else {
        Cow::Owned(from_storage(resource, object.clone()))
    }
}

/// An object in the version by which it is validated: autoscalers have one validation for both of theirs.
pub(crate) fn validated<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.group == "autoscaling" && !resource.is_storage_version() {
        Cow::Owned(to_storage(resource, object.clone()))
    } else {
        Cow::Borrowed(object)
    }
}

/// The stored form of an object that a client sent as `resource`.
pub(crate) fn to_storage(resource: &Resource, mut object: Value) -> Value {
    if resource.is_storage_version() {
        return object;
    }
    match resource.group.as_str() {
        "events.k8s.io" => rename(&mut object, |new, old| (new, old)),
        "autoscaling" => autoscalers::from_v1(&mut object),
        _ => {}
    }
    object["apiVersion"] = Value::from(resource.storage_api_version.clone());
    if let Some(schema) = resource.custom.as_ref().and_then(|custom| custom.stored.as_ref()) {
        schema.prune(&mut object);
        schema.default(&mut object);
    }
    object
}

/// Gives an autoscaler of the old version the target that it has if it names none.
pub(crate) fn imply_target(resource: &Resource, object: &mut Value) {
    if resource.group == "autoscaling" && resource.version == "v1" {
        autoscalers::imply_target(object);
    }
}

/// An autoscaler in another version.
pub(crate) fn between_autoscalers(mut object: Value, version: &str) -> Value {
    let is = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (is, version) {
        ("autoscaling/v2", "autoscaling/v1") => autoscalers::to_v1(&mut object),
        ("autoscaling/v1", "autoscaling/v2") => autoscalers::from_v1(&mut object),
        _ => {}
    }
    object["apiVersion"] = Value::from(version);
    object
}

/// The fields of `events.k8s.io/v1` and their names in `v1`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("reportingController", "reportingComponent"),
];

fn rename(
    object: &mut Value,
    direction: impl Fn(&'static str, &'static str) -> (&'static str, &'static str),
) {
    let Some(map) = object.as_object_mut() else { return };
    let renamed: Map = EVENT_FIELDS
        .iter()
        .filter_map(|(new, old)| {
            let (from, to) = direction(new, old);
            Some((to.to_owned(), map.remove(from)?))
        })
        .collect();
    map.extend(renamed);
    // These are always written in the one version only.
    if map.contains_key("regarding") {
        for field in ["reportingController", "reportingInstance"] {
            if map.get(field).and_then(Value::as_str) == Some("") {
                map.remove(field);
            }
        }
    } else {
        for field in ["reportingComponent", "reportingInstance"] {
            map.entry(field).or_insert(json!(""));
        }
    }
    // Both versions write these whether they are known or not.
    for (field, empty) in [("source", json!({})), ("deprecatedSource", json!({}))] {
        let wanted = map.contains_key(if field == "source" {
            "involvedObject"
        } else {
            "regarding"
        });
        if wanted {
            map.entry(field).or_insert(empty);
        }
    }
}
