//! The difference between two revisions, if a pod can take it in place.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::InPlaceOptions;
use super::hash::{Reference, reference};
use super::resize::{self, Resources};
use super::state::{Change, RefMetadata};
use crate::pod::EnvVar;

/// The change from one template to another, or none when pods must be recreated for it.
///
/// In place go: anything in the template's metadata, other images of containers (init containers excepted), and with
/// the gate other amounts of CPU and memory.
pub fn change(
    old: &Value,
    new: &Value,
    revision: &str,
    grace_seconds: i32,
    options: InPlaceOptions,
) -> Option<Change> {
    let (container_images, container_resources) =
        container_changes(old.get("spec")?, new.get("spec")?, options)?;
    let mut change = Change {
        revision: revision.to_owned(),
        container_images,
        container_resources,
        grace_seconds: grace_seconds.max(0),
        ..Change::default()
    };
    let (mut old_meta, mut new_meta) = (metadata(old), metadata(new));
    if old_meta != new_meta {
        let changed = changed_values(&old_meta, &new_meta);
        for container in new
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|_| options.env_from_metadata)
        {
            let refs = references(container, &changed);
            if refs != RefMetadata::default() {
                change.update_env_from_metadata = true;
                let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
                change.container_ref_metadata.insert(name.to_owned(), refs);
            }
        }
        // What containers refer to changes with them, not with the rest.
        for refs in change.container_ref_metadata.values() {
            for meta in [&mut old_meta, &mut new_meta] {
                remove_all(meta, "labels", &refs.labels);
                remove_all(meta, "annotations", &refs.annotations);
            }
        }
        change.metadata_patch = metadata_patch(&old_meta, &new_meta);
    }
    Some(change)
}

type ContainerChanges = (BTreeMap<String, String>, BTreeMap<String, Resources>);

/// The new images and resources by container; none when anything else in the pod's spec differs.
fn container_changes(old: &Value, new: &Value, options: InPlaceOptions) -> Option<ContainerChanges> {
    let (old_spec, new_spec) = (old, new);
    let (mut old_rest, mut new_rest) = (old.clone(), new.clone());
    let (old_list, new_list) = (take_containers(&mut old_rest), take_containers(&mut new_rest));
    if old_rest != new_rest || old_list.len() != new_list.len() {
        return None;
    }
    let mut images = BTreeMap::new();
    let mut resources = BTreeMap::new();
    for (mut old, mut new) in old_list.into_iter().zip(new_list) {
        let name = old
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let (old_image, new_image) = (take_image(&mut old), take_image(&mut new));
        if options.vertical_scaling && old.get("resources") != new.get("resources") {
            let change = resize::change(&resize::take(&mut old), &resize::take(&mut new))?;
            resources.insert(name.clone(), change);
        }
        if old != new || old_image.is_some() != new_image.is_some() {
            return None;
        }
        if old_image != new_image {
            images.insert(name, new_image?);
        }
    }
    if !resources.is_empty() && resize::class(old_spec) != resize::class(new_spec) {
        return None;
    }
    Some((images, resources))
}

fn take_containers(spec: &mut Value) -> Vec<Value> {
    match spec.as_object_mut().and_then(|spec| spec.remove("containers")) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn take_image(container: &mut Value) -> Option<String> {
    match container.as_object_mut()?.remove("image")? {
        Value::String(image) => Some(image),
        _ => None,
    }
}

fn metadata(template: &Value) -> Map<String, Value> {
    template
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// Labels and annotations that are new or have another value.
fn changed_values(old: &Map<String, Value>, new: &Map<String, Value>) -> RefMetadata {
    let changed = |field: &str| {
        strings(new, field)
            .filter(|(key, value)| {
                old.get(field)
                    .and_then(|map| map.get(key))
                    .and_then(Value::as_str)
                    != Some(value)
            })
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    RefMetadata {
        creation_timestamp: None,
        labels: changed("labels"),
        annotations: changed("annotations"),
    }
}

fn strings<'a>(meta: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = meta.get(field).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Which of the changed labels and annotations the container's environment refers to.
fn references(container: &Value, changed: &RefMetadata) -> RefMetadata {
    let mut refs = RefMetadata::default();
    for env in container
        .get("env")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Ok(env) = serde_json::from_value::<EnvVar>(env.clone()) else {
            continue;
        };
        let (from, to, key) = match reference(&env) {
            Some(Reference::Label(key)) => (&changed.labels, &mut refs.labels, key),
            Some(Reference::Annotation(key)) => (&changed.annotations, &mut refs.annotations, key),
            None => continue,
        };
        if let Some(value) = from.get(key) {
            to.insert(key.to_owned(), value.clone());
        }
    }
    refs
}

fn remove_all(meta: &mut Map<String, Value>, field: &str, keys: &BTreeMap<String, String>) {
    if let Some(map) = meta.get_mut(field).and_then(Value::as_object_mut) {
        map.retain(|key, _| !keys.contains_key(key));
        if map.is_empty() {
            meta.remove(field);
        }
    }
}

/// The strategic merge patch of a pod that leads from one metadata to the other.
fn metadata_patch(old: &Map<String, Value>, new: &Map<String, Value>) -> Option<Value> {
    let mut patch = Map::new();
    for field in ["labels", "annotations"] {
        let mut changes = Map::new();
        for (key, value) in strings(new, field) {
            if old
                .get(field)
                .and_then(|map| map.get(key))
                .and_then(Value::as_str)
                != Some(value)
            {
                changes.insert(key.to_owned(), json!(value));
            }
        }
        for (key, _) in strings(old, field) {
            if new.get(field).and_then(|map| map.get(key)).is_none() {
                changes.insert(key.to_owned(), Value::Null);
            }
        }
        if !changes.is_empty() {
            patch.insert(field.to_owned(), Value::Object(changes));
        }
    }
    let list = |meta: &Map<String, Value>| {
        meta.get("finalizers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (old_finalizers, new_finalizers) = (list(old), list(new));
    let added: Vec<&Value> = new_finalizers
        .iter()
        .filter(|f| !old_finalizers.contains(f))
        .collect();
    let removed: Vec<&Value> = old_finalizers
        .iter()
        .filter(|f| !new_finalizers.contains(f))
        .collect();
    if !added.is_empty() {
        patch.insert("finalizers".to_owned(), json!(added));
    }
    if !removed.is_empty() {
        patch.insert("$deleteFromPrimitiveList/finalizers".to_owned(), json!(removed));
    }
    (!patch.is_empty()).then(|| json!({ "metadata": patch }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn template(meta: Value, image: &str, extra: Value) -> Value {
        let mut container = json!({ "name": "main", "image": image });
        container
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({ "metadata": meta, "spec": { "containers": [{ "name": "side", "image": "s" }, container] } })
    }

    #[rstest]
    #[case::nothing(template(json!({}), "a", json!({})), Some(json!({ "revision": "r" })))]
    #[case::image(template(json!({}), "b", json!({})), Some(json!({ "revision": "r", "containerImages": { "main": "b" } })))]
    #[case::environment(template(json!({}), "a", json!({ "env": [{ "name": "x" }] })), None)]
    #[case::no_image(json!({ "metadata": {}, "spec": { "containers": [{ "name": "side", "image": "s" }, { "name": "main" }] } }), None)]
    #[case::fewer_containers(json!({ "metadata": {}, "spec": { "containers": [{ "name": "side", "image": "s" }] } }), None)]
    #[case::other_spec(json!({ "metadata": {}, "spec": { "hostNetwork": true, "containers": [{ "name": "side", "image": "s" }, { "name": "main", "image": "a" }] } }), None)]
    fn from_the_plain_one(#[case] new: Value, #[case] want: Option<Value>) {
        let got = change(
            &template(json!({}), "a", json!({})),
            &new,
            "r",
            0,
            InPlaceOptions::default(),
        );
        assert_eq!(got.map(|change| serde_json::to_value(change).unwrap()), want);
    }

    #[test]
    fn metadata_is_patched() {
        let old = template(
            json!({ "labels": { "gone": "1", "stays": "1", "changes": "1" }, "finalizers": ["f/old"] }),
            "a",
            json!({}),
        );
        let new = template(
            json!({ "labels": { "stays": "1", "changes": "2" }, "annotations": { "new": "1" }, "finalizers": ["f/new"] }),
            "a",
            json!({}),
        );
        let patch = change(&old, &new, "r", 0, InPlaceOptions::default())
            .unwrap()
            .metadata_patch
            .unwrap();
        assert_eq!(
            patch,
            json!({ "metadata": { "labels": { "gone": null, "changes": "2" }, "annotations": { "new": "1" },
            "finalizers": ["f/new"], "$deleteFromPrimitiveList/finalizers": ["f/old"] } })
        );
    }

    #[test]
    fn what_the_environment_refers_to_changes_with_the_container() {
        let env = json!({ "env": [{ "name": "CFG", "valueFrom": { "fieldRef": { "fieldPath": "metadata.annotations['cfg']" } } }] });
        let old = template(
            json!({ "annotations": { "cfg": "one", "other": "1" } }),
            "a",
            env.clone(),
        );
        let new = template(json!({ "annotations": { "cfg": "two", "other": "2" } }), "a", env);
        let got =
            serde_json::to_value(change(&old, &new, "r", 0, InPlaceOptions::default()).unwrap()).unwrap();
        assert_eq!(
            got["containerRefMetadata"],
            json!({ "main": { "creationTimestamp": null, "annotations": { "cfg": "two" } } })
        );
        assert_eq!(got["updateEnvFromMetadata"], true);
        let patch = change(&old, &new, "r", 0, InPlaceOptions::default())
            .unwrap()
            .metadata_patch
            .unwrap();
        assert_eq!(patch, json!({ "metadata": { "annotations": { "other": "2" } } }));
    }
}
