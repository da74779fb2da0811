//! Makes copies, and compares them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::api::v1alpha1::ResourceDistribution;
use crate::kit::{Owner, controller_of};
use crate::pods::template::to_go_json;

/// Annotation of a copy: the distribution that it comes from.
const SOURCE: &str = "kruise.io/resourcedistribution.resource.from";
/// Annotation of a copy: the hash of the resource that it was made of. OpenKruise never reads it.
const HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";

/// Whether an object is a copy of this distribution. As in OpenKruise the uid does not count.
pub(super) fn is_copy_of(distribution: &ResourceDistribution, object: &ObjectMeta) -> bool {
    let own = Owner::of(distribution).reference();
    controller_of(object).is_some_and(|owner| {
        (&owner.api_version, &owner.kind, &owner.name) == (&own.api_version, &own.kind, &own.name)
    })
}

/// SHA-256 of the resource as Go writes it, in hexadecimal digits.
fn hash(resource: &Value) -> String {
    let digest = digest(&SHA256, to_go_json(resource).as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// The copy of a distribution's resource in a namespace; `old` is the copy that it replaces.
pub(super) fn copy(distribution: &ResourceDistribution, namespace: &str, old: Option<&Value>) -> Value {
    let resource = &distribution.spec.resource;
    let mut copy = resource.clone();
    let Some(fields) = copy.as_object_mut() else {
        return copy;
    };
    let mut metadata = object(fields.remove("metadata"));
    if let Some(old) = old.and_then(|old| old.get("metadata")) {
        keep(&mut metadata, old);
    }
    metadata.insert("namespace".to_owned(), json!(namespace));
    let own = Owner::of(distribution).reference();
    let mut owners = array(metadata.remove("ownerReferences"));
    if !owners
        .iter()
        .any(|owner| owner.get("uid").and_then(Value::as_str) == Some(&own.uid))
    {
        owners.push(json!(own));
    }
    metadata.insert("ownerReferences".to_owned(), json!(owners));
    let mut annotations = object(metadata.remove("annotations"));
    annotations.insert(HASH.to_owned(), json!(hash(resource)));
    annotations.insert(SOURCE.to_owned(), json!(own.name));
    metadata.insert("annotations".to_owned(), json!(annotations));
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    copy
}

/// Keeps the additions of others to the old copy: labels and annotations that the new one lacks, and finalizers.
fn keep(metadata: &mut Map<String, Value>, old: &Value) {
    for field in ["labels", "annotations"] {
        let mut kept = object(old.get(field).cloned());
        kept.extend(object(metadata.remove(field)));
        if !kept.is_empty() {
            metadata.insert(field.to_owned(), json!(kept));
        }
    }
    let texts = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut finalizers: BTreeSet<String> = texts(metadata.get("finalizers")).into_iter().collect();
    finalizers.extend(texts(old.get("finalizers")));
    if !finalizers.is_empty() {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn array(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(array)) => array,
        _ => Vec::new(),
    }
}

/// Whether two objects differ in more than their metadata and status.
pub(super) fn differ(one: &Value, other: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|name, value| !matches!(name.as_str(), "metadata" | "status") && !value.is_null());
        }
        object
    };
    rest(one) != rest(other)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn distribution(resource: Value) -> ResourceDistribution {
        serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
            "metadata": { "name": "rd", "uid": "u1" },
            "spec": { "resource": resource, "targets": {} },
        }))
        .unwrap()
    }

    fn config_map(metadata: Value) -> Value {
        json!({ "apiVersion": "v1", "data": { "a": "1" }, "kind": "ConfigMap", "metadata": metadata })
    }

    fn own() -> Value {
        json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "rd", "uid": "u1",
            "controller": true, "blockOwnerDeletion": true })
    }

    /// The hashes that OpenKruise's copies had in the recordings.
    #[rstest]
    #[case(
        config_map(json!({ "name": "conf" })),
        "604ccb035979942b9b00f71cdf3ccf1179626b798c9b1eaf486f2ea798933a1c"
    )]
    #[case(
        json!({ "apiVersion": "v1", "data": { "k": "dg==" }, "kind": "Secret", "metadata": { "name": "sec" }, "type": "Opaque" }),
        "5d66a8521a0f0f602c5a84f24d4de8e89a68b052507ff34c24ce6993ca4df5fa"
    )]
    fn hashes_are_the_recorded_ones(#[case] resource: Value, #[case] expected: &str) {
        assert_eq!(hash(&resource), expected);
    }

    /// The metadata of the resource, that of the old copy, and that of the new one without the two annotations of its own.
    #[rstest]
    #[case::plain(json!({ "name": "conf" }), Value::Null, json!({ "name": "conf", "ownerReferences": [own()] }))]
    #[case::namespace_of_its_own(
        json!({ "name": "conf", "namespace": "x" }), Value::Null,
        json!({ "name": "conf", "ownerReferences": [own()] })
    )]
    #[case::metadata_is_carried_over(
        json!({ "name": "conf", "labels": { "l": "1" }, "annotations": { "n": "1" }, "finalizers": ["f/a"] }), Value::Null,
        json!({ "name": "conf", "labels": { "l": "1" }, "annotations": { "n": "1" }, "finalizers": ["f/a"],
            "ownerReferences": [own()] })
    )]
    #[case::other_owners_come_first(
        json!({ "name": "conf", "ownerReferences": [{ "uid": "o" }] }), Value::Null,
        json!({ "name": "conf", "ownerReferences": [{ "uid": "o" }, own()] })
    )]
    #[case::an_owner_of_that_uid_is_enough(
        json!({ "name": "conf", "ownerReferences": [{ "uid": "u1" }] }), Value::Null,
        json!({ "name": "conf", "ownerReferences": [{ "uid": "u1" }] })
    )]
    #[case::labels_of_the_old_copy_stay(
        json!({ "name": "conf", "labels": { "l": "2" } }), json!({ "labels": { "l": "1", "hand": "1" } }),
        json!({ "name": "conf", "labels": { "l": "2", "hand": "1" }, "ownerReferences": [own()] })
    )]
    #[case::annotations_of_the_old_copy_stay(
        json!({ "name": "conf" }), json!({ "annotations": { "hand": "1", HASH: "old", SOURCE: "old" } }),
        json!({ "name": "conf", "annotations": { "hand": "1" }, "ownerReferences": [own()] })
    )]
    #[case::finalizers_are_a_sorted_union(
        json!({ "name": "conf", "finalizers": ["f/b"] }), json!({ "finalizers": ["f/c", "f/a"] }),
        json!({ "name": "conf", "finalizers": ["f/a", "f/b", "f/c"], "ownerReferences": [own()] })
    )]
    #[case::old_owners_go(
        json!({ "name": "conf" }), json!({ "ownerReferences": [{ "uid": "o" }], "resourceVersion": "7", "uid": "c" }),
        json!({ "name": "conf", "ownerReferences": [own()] })
    )]
    fn metadata(#[case] resource: Value, #[case] old: Value, #[case] mut expected: Value) {
        let distribution = distribution(config_map(resource));
        let old = config_map(old);
        let old = (!old["metadata"].is_null()).then_some(&old);
        let mut got = copy(&distribution, "a", old);
        assert_eq!(got["metadata"]["annotations"][SOURCE], "rd");
        let annotations = got["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(SOURCE);
        assert_eq!(
            annotations.remove(HASH).unwrap(),
            hash(&distribution.spec.resource)
        );
        if annotations.is_empty() {
            got["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        expected["namespace"] = json!("a");
        assert_eq!(got["metadata"], expected);
        assert!(!differ(&got, &distribution.spec.resource));
    }

    #[rstest]
    #[case::the_same(json!({ "data": { "a": "1" } }), json!({ "data": { "a": "1" } }), false)]
    #[case::data(json!({ "data": { "a": "1" } }), json!({ "data": { "a": "2" } }), true)]
    #[case::a_key_less(json!({ "data": { "a": "1", "b": "1" } }), json!({ "data": { "a": "1" } }), true)]
    #[case::only_metadata(json!({ "metadata": { "labels": { "l": "1" } } }), json!({ "metadata": {} }), false)]
    #[case::only_status(json!({ "status": {} }), json!({}), false)]
    #[case::text_of_a_secret(json!({ "stringData": { "a": "b" } }), json!({ "data": { "a": "Yg==" } }), true)]
    #[case::a_default(json!({}), json!({ "type": "Opaque" }), true)]
    fn difference(#[case] one: Value, #[case] other: Value, #[case] expected: bool) {
        assert_eq!(differ(&one, &other), expected);
        assert_eq!(differ(&other, &one), expected);
    }

    #[rstest]
    #[case::own(own(), true)]
    #[case::another_uid(json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "rd", "uid": "u2", "controller": true }), true)]
    #[case::another_name(json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "x", "uid": "u1", "controller": true }), false)]
    #[case::another_kind(json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "rd", "uid": "u1", "controller": true }), false)]
    #[case::no_controller(json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "rd", "uid": "u1" }), false)]
    fn ownership(#[case] owner: Value, #[case] expected: bool) {
        let metadata: ObjectMeta = serde_json::from_value(json!({ "ownerReferences": [owner] })).unwrap();
        assert_eq!(is_copy_of(&distribution(json!({})), &metadata), expected);
        assert!(!is_copy_of(&distribution(json!({})), &ObjectMeta::default()));
    }
}
