//! The objects a set creates.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::lifecycle::{self, state};
use super::observe::Revision;
use super::{owner, revision};
use crate::api::labels;
use crate::api::v1alpha1::CloneSet;

/// The name of the pod with `id`.
pub(crate) fn pod_name(set: &CloneSet, id: &str) -> String {
    format!("{}-{id}", set.name_any())
}

/// The pod with `id` of `revision`, with the revision's name or with its hash alone as a label.
pub(crate) fn pod(set: &CloneSet, revision: &Revision, id: &str, short_hash: bool, now: Timestamp) -> Value {
    let template = &revision.template;
    let mut labels = strings(template, "/metadata/labels");
    labels.insert(labels::INSTANCE_ID.to_owned(), id.to_owned());
    let short = revision::short(&revision.name);
    let label = if short_hash { short } else { &revision.name };
    labels.insert(labels::REVISION_HASH.to_owned(), label.to_owned());
    labels.insert(labels::TEMPLATE_HASH.to_owned(), short.to_owned());
    labels.insert(
        labels::LIFECYCLE_STATE.to_owned(),
        state::PREPARING_NORMAL.to_owned(),
    );
    let mut annotations = strings(template, "/metadata/annotations");
    annotations.insert(labels::LIFECYCLE_TIMESTAMP.to_owned(), lifecycle::rfc3339(now));
    let mut metadata = json!({
        "name": pod_name(set, id),
        "generateName": format!("{}-", set.name_any()),
        "namespace": set.namespace(),
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner::reference(set)],
    });
    if let (Some(finalizers), Some(map)) =
        (template.pointer("/metadata/finalizers"), metadata.as_object_mut())
    {
        map.insert("finalizers".to_owned(), finalizers.clone());
    }
    let mut spec = template
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    add_gate(&mut spec);
    add_volumes(&mut spec, set, id);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// The claims of the pod with `id`.
pub(crate) fn claims(set: &CloneSet, id: &str) -> Vec<Value> {
    set.spec
        .claim_templates()
        .iter()
        .map(|template| claim(set, template, id))
        .collect()
}

fn claim(set: &CloneSet, template: &Value, id: &str) -> Value {
    let mut labels = set.spec.selector.match_labels.clone().unwrap_or_default();
    labels.insert(labels::INSTANCE_ID.to_owned(), id.to_owned());
    let mut metadata = json!({
        "name": claim_name(set, template, id),
        "namespace": set.namespace(),
        "labels": labels,
        "ownerReferences": [owner::reference(set)],
    });
    let annotations = strings(template, "/metadata/annotations");
    if let (false, Some(map)) = (annotations.is_empty(), metadata.as_object_mut()) {
        map.insert("annotations".to_owned(), json!(annotations));
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

fn claim_name(set: &CloneSet, template: &Value, id: &str) -> String {
    format!("{}-{}-{id}", template_name(template), set.name_any())
}

fn template_name(template: &Value) -> &str {
    template
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Every pod can be updated in place one day, and its readiness gate cannot be added later.
fn add_gate(spec: &mut Map<String, Value>) {
    let gates = spec.entry("readinessGates").or_insert_with(|| json!([]));
    if let Some(gates) = gates.as_array_mut()
        && !gates
            .iter()
            .any(|gate| gate.get("conditionType").and_then(Value::as_str) == Some(labels::IN_PLACE_READY))
    {
        gates.push(json!({ "conditionType": labels::IN_PLACE_READY }));
    }
}

/// The pod's own claims take the place of volumes of the same name.
fn add_volumes(spec: &mut Map<String, Value>, set: &CloneSet, id: &str) {
    let templates = set.spec.claim_templates();
    if templates.is_empty() {
        return;
    }
    let mut volumes: Vec<Value> = templates
        .iter()
        .map(|template| {
            let claim = json!({ "claimName": claim_name(set, template, id) });
            json!({ "name": template_name(template), "persistentVolumeClaim": claim })
        })
        .collect();
    let own: Vec<&str> = templates.iter().map(template_name).collect();
    if let Some(Value::Array(others)) = spec.remove("volumes") {
        let is_own = |volume: &Value| {
            volume
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| own.contains(&name))
        };
        volumes.extend(others.into_iter().filter(|volume| !is_own(volume)));
    }
    spec.insert("volumes".to_owned(), Value::Array(volumes));
}

fn strings(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = value.pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
