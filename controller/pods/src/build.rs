//! Pods and claims from templates.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::labels;
use kruise_api::v1alpha1::LifecycleHook;
use kruise_kit::Owner;
use pod_rules::nodes::daemon;
use serde_json::{Map, Value, json};

use super::lifecycle::{self, state};
use super::revision::{self, Revision};

/// Everything but the template that the pods of an owner have in common.
#[derive(Debug, Clone, Copy)]
pub struct Blueprint<'a> {
    /// The owner, whose name begins those of pods and claims.
    pub owner: &'a Owner,
    /// The templates of the claims of each pod.
    pub claim_templates: &'a [Value],
    /// The labels of claims.
    pub claim_labels: &'a BTreeMap<String, String>,
    /// How the pods of an owner are distinguished, and the consequences of it.
    pub identity: Identity<'a>,
}

/// How the pods of an owner are distinguished.
#[derive(Debug, Clone, Copy)]
pub enum Identity<'a> {
    /// By ids that are drawn: pods come and go, with their claims.
    Drawn {
        /// The label that has the id, of pods and of claims.
        label: &'static str,
        /// Whether the label of the revision is the hash alone, without the owner's name.
        short_hash: bool,
    },
    /// By ordinals: each pod has a successor of the same name, which finds the claims again.
    Ordinal {
        /// The Service that gives the pods their names in the network.
        subdomain: &'a str,
        /// Whether a label has the ordinal.
        index_label: bool,
        /// The hook that holds new pods.
        pre_normal: Option<&'a LifecycleHook>,
    },
    /// By the node that each is made for. Such pods have no state in their life.
    Node {
        /// Whether the scheduler binds them.
        by_scheduler: bool,
        /// Whether they can be updated in place.
        gate: bool,
        /// The number of the template, which a label has.
        generation: Option<&'a str>,
    },
    /// By the node on which each runs once. Such pods have no revision either.
    Once {
        /// Whether the scheduler binds them.
        by_scheduler: bool,
        /// Labels that they have beside those of the template.
        labels: &'a [(&'static str, &'a str)],
    },
}

impl Identity<'_> {
    /// Whether pods have ordinals.
    pub fn is_ordinal(&self) -> bool {
        matches!(self, Self::Ordinal { .. })
    }
}

/// A pod to make.
#[derive(Debug, Clone)]
pub struct NewPod<'a> {
    /// The last part of its name.
    pub id: String,
    /// Its revision.
    pub revision: &'a Revision,
    /// The node that it is for; empty where any will do.
    pub node: &'a str,
}

/// The scheduler of pods that are bound when they are made.
const NO_SCHEDULER: &str = "kubernetes.io/daemonset-controller";

/// The name of the pod with `id`.
pub fn pod_name(owner: &Owner, id: &str) -> String {
    format!("{}-{id}", owner.key.name)
}

/// The pod `new`.
pub fn pod(blueprint: &Blueprint<'_>, new: &NewPod<'_>, now: Timestamp) -> Value {
    let owner = blueprint.owner;
    let NewPod { id, revision, node } = new;
    let template = &revision.template;
    let mut labels = strings(template, "/metadata/labels");
    let name = pod_name(owner, id);
    let mut first_state = Some(state::PREPARING_NORMAL);
    let mut hash = Some(revision.name.as_str());
    match blueprint.identity {
        Identity::Drawn { label, short_hash } => {
            labels.insert(label.to_owned(), id.clone());
            let short = revision::short(&revision.name);
            if short_hash {
                hash = Some(short);
            }
            labels.insert(labels::TEMPLATE_HASH.to_owned(), short.to_owned());
        }
        Identity::Ordinal {
            index_label,
            pre_normal,
            ..
        } => {
            if pre_normal.is_none_or(|hook| has_all(hook, &labels, template)) {
                first_state = Some(state::NORMAL);
            }
            labels.insert(labels::ORDINAL_NAME.to_owned(), name.clone());
            if index_label {
                labels.insert(labels::ORDINAL_INDEX.to_owned(), id.clone());
            }
        }
        Identity::Node { generation, .. } => {
            first_state = None;
            hash = Some(revision::short(&revision.name));
            let generation =
                generation.map(|number| (labels::TEMPLATE_GENERATION.to_owned(), number.to_owned()));
            labels.extend(generation);
        }
        Identity::Once { labels: own, .. } => {
            (first_state, hash) = (None, None);
            labels.extend(
                own.iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
            );
        }
    }
    labels.extend(hash.map(|hash| (labels::REVISION_HASH.to_owned(), hash.to_owned())));
    let mut annotations = strings(template, "/metadata/annotations");
    if let Some(first_state) = first_state {
        labels.insert(labels::LIFECYCLE_STATE.to_owned(), first_state.to_owned());
        annotations.insert(labels::LIFECYCLE_TIMESTAMP.to_owned(), lifecycle::rfc3339(now));
    }
    let mut metadata = json!({
        "name": name,
        "generateName": format!("{}-", owner.key.name),
        "namespace": owner.key.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner.reference()],
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
    match blueprint.identity {
        Identity::Drawn { .. } => add_gate(&mut spec),
        Identity::Ordinal { subdomain, .. } => {
            spec.insert("hostname".to_owned(), json!(name));
            if !subdomain.is_empty() {
                spec.insert("subdomain".to_owned(), json!(subdomain));
            }
        }
        Identity::Node { gate, .. } => {
            if gate {
                add_gate(&mut spec);
            }
        }
        Identity::Once { .. } => {}
    }
    add_volumes(&mut spec, blueprint, id);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    match blueprint.identity {
        Identity::Node { by_scheduler, .. } => for_node(&pod, node, by_scheduler),
        Identity::Once { by_scheduler, .. } => once_on(&pod, node, by_scheduler),
        Identity::Drawn { .. } | Identity::Ordinal { .. } => pod,
    }
}

/// The pod with the fields of one that is made for a node.
fn for_node(pod: &Value, node: &str, by_scheduler: bool) -> Value {
    let mut pod = shared_json::to_value(pod).unwrap_or_default();
    daemon::tolerate(&mut pod);
    if by_scheduler {
        daemon::pin(&mut pod, node);
    } else {
        pod["spec"]["nodeName"] = node.into();
        pod["spec"]["schedulerName"] = NO_SCHEDULER.into();
    }
    serde_json::to_value(pod).unwrap_or_default()
}

/// The pod with the fields of one that runs once on a node.
fn once_on(pod: &Value, node: &str, by_scheduler: bool) -> Value {
    let mut pod = shared_json::to_value(pod).unwrap_or_default();
    if by_scheduler {
        daemon::pin(&mut pod, node);
    } else {
        pod["spec"]["nodeName"] = node.into();
    }
    serde_json::to_value(pod).unwrap_or_default()
}

/// The claims of the pod with `id`.
pub fn claims(blueprint: &Blueprint<'_>, id: &str) -> Vec<Value> {
    blueprint
        .claim_templates
        .iter()
        .map(|template| claim(blueprint, template, id))
        .collect()
}

fn claim(blueprint: &Blueprint<'_>, template: &Value, id: &str) -> Value {
    let owner = blueprint.owner;
    let mut labels = blueprint.claim_labels.clone();
    let mut owners = json!([owner.reference()]);
    match blueprint.identity {
        Identity::Drawn { label, .. } => drop(labels.insert(label.to_owned(), id.to_owned())),
        Identity::Ordinal { .. } => {
            let mut own = strings(template, "/metadata/labels");
            own.append(&mut labels);
            labels = own;
            owners = Value::Null;
        }
        Identity::Node { .. } | Identity::Once { .. } => {}
    }
    let mut metadata = json!({
        "name": claim_name(owner, template, id),
        "namespace": owner.key.namespace,
        "labels": labels,
        "ownerReferences": owners,
    });
    if let Some(map) = metadata.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
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

/// Whether a pod of the template has all labels and finalizers of a hook from the beginning.
fn has_all(hook: &LifecycleHook, labels: &BTreeMap<String, String>, template: &Value) -> bool {
    let finalizers = template.pointer("/metadata/finalizers").and_then(Value::as_array);
    let has_finalizer = |wanted: &String| {
        let finalizers = finalizers.into_iter().flatten();
        finalizers
            .into_iter()
            .any(|finalizer| finalizer.as_str() == Some(wanted))
    };
    let mut wanted = hook.labels_handler.iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && hook.finalizers_handler.iter().flatten().all(has_finalizer)
}

/// The name of the claim that the pod with `id` has of a template.
pub fn claim_name(owner: &Owner, template: &Value, id: &str) -> String {
    format!("{}-{}-{id}", template_name(template), owner.key.name)
}

/// The name of a template of claims.
pub fn template_name(template: &Value) -> &str {
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
fn add_volumes(spec: &mut Map<String, Value>, blueprint: &Blueprint<'_>, id: &str) {
    let (owner, templates) = (blueprint.owner, blueprint.claim_templates);
    if templates.is_empty() {
        return;
    }
    let mut volumes: Vec<Value> = templates
        .iter()
        .map(|template| {
            let claim = json!({ "claimName": claim_name(owner, template, id) });
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

/// The texts of the map at a pointer: labels, annotations.
pub fn strings(value: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = value.pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
