//! The workload of a subset, made from the template.

use serde_json::{Value, json};

use crate::api::labels;
use crate::api::v1alpha1::{Subset, UnitedDeployment, WorkloadTemplate};
use crate::kit::Owner;
use crate::pods::strategic;
use crate::pods::template::to_go_json;
use crate::workloads::uniteddeployment::kinds::ChildKind;

/// The terms that a pod's node must match one of.
const TERMS: [&str; 4] = [
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// The longest part of a name before the random one (Kubernetes' own limit).
const PREFIX_BYTES_MAX: usize = 58;

/// The desired workload of a subset.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::uniteddeployment) struct Wanted {
    /// The name of the subset.
    pub(in crate::workloads::uniteddeployment) subset: String,
    /// The name of the revision.
    pub(in crate::workloads::uniteddeployment) revision: String,
    /// How many pods it is to have.
    pub(in crate::workloads::uniteddeployment) replicas: i32,
    /// How many of them keep the old revision.
    pub(in crate::workloads::uniteddeployment) partition: i32,
    /// How many of them may be unavailable during an update, if not as many as the template says.
    pub(in crate::workloads::uniteddeployment) max_unavailable: Option<i32>,
}

/// The beginning of the names of a subset's workloads.
pub(in crate::workloads::uniteddeployment) fn prefix(set: &UnitedDeployment, subset: &str) -> String {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let prefix = format!("{name}-{subset}-");
    // A name may end as the random part does.
    let problems = pod_rules::names::subdomain_problems(&format!("{prefix}a"));
    if problems.is_empty() {
        prefix
    } else {
        format!("{name}-")
    }
}

/// The same, no longer than a part before a random one may be.
pub(in crate::workloads::uniteddeployment) fn cut(prefix: &str) -> &str {
    let end = prefix.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let end = end.take_while(|end| *end <= PREFIX_BYTES_MAX).last();
    prefix.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The patch of a subset as the annotation of its workload has it.
pub(super) fn patch_text(subset: &Subset) -> String {
    subset.patch.as_ref().map(to_go_json).unwrap_or_default()
}

/// Brings the workload of a subset into the desired state. `object` is the workload, or an empty object for a new one. Nothing else of
/// it changes, and no label or annotation is taken away.
///
/// # Errors
/// That there is no such subset or template, and the error in the patch of the subset.
pub(in crate::workloads::uniteddeployment) fn apply(
    set: &UnitedDeployment,
    kind: ChildKind,
    wanted: &Wanted,
    object: &mut Value,
) -> Result<(), String> {
    let name = &wanted.subset;
    let subset = set
        .spec
        .topology
        .subsets
        .iter()
        .find(|subset| subset.name == *name);
    let subset = subset.ok_or_else(|| format!("fail to find subset config {name}"))?;
    let template = kind.template(&set.spec.template);
    let template = template.ok_or_else(|| format!("there is no {}", kind.field()))?;
    let mut spec = template.spec.clone();
    *field(&mut spec, "selector") = selector_of(set, name);
    *field(&mut spec, "replicas") = json!(wanted.replicas);
    partition(kind, wanted.partition, &mut spec);
    if let Some(limit) = wanted.max_unavailable {
        max_unavailable(kind, limit, &mut spec);
    }
    let pod = field(&mut spec, "template");
    let own = field(field(pod, "metadata"), "labels");
    *field(own, labels::SUBSET_NAME) = json!(name);
    *field(own, labels::SUBSET_REVISION) = json!(wanted.revision);
    place(subset, pod);
    if let Some(patch) = subset.patch.as_ref().filter(|patch| !patch.is_null()) {
        strategic::merge(pod, patch)?;
    }
    *field(object, "apiVersion") = json!(kind.api_version());
    *field(object, "kind") = json!(kind.kind());
    *field(object, "spec") = spec;
    let metadata = field(object, "metadata");
    *field(metadata, "namespace") = json!(set.metadata.namespace);
    *field(metadata, "generateName") = json!(prefix(set, name));
    let own = field(metadata, "labels");
    mark(own, template, "labels");
    for (key, value) in set.spec.selector.match_labels.iter().flatten() {
        *field(own, key) = json!(value);
    }
    *field(own, labels::SUBSET_REVISION) = json!(wanted.revision);
    *field(own, labels::SUBSET_NAME) = json!(name);
    let notes = field(metadata, "annotations");
    mark(notes, template, "annotations");
    *field(notes, labels::SUBSET_PATCH) = json!(patch_text(subset));
    own_by(set, field(metadata, "ownerReferences"));
    Ok(())
}

/// A field of an object, null if it is not there. Anything else gives way to an object.
fn field<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[name]
}

/// Adds items to a list. Anything else gives way to a list.
fn extend(value: &mut Value, items: &[Value]) {
    match value {
        Value::Array(list) => list.extend_from_slice(items),
        other => *other = Value::from(items),
    }
}

/// Adds the labels or annotations of a template.
fn mark(marks: &mut Value, template: &WorkloadTemplate, of: &str) {
    let own = template.metadata.as_ref().and_then(|metadata| metadata.get(of));
    for (key, value) in own.and_then(Value::as_object).into_iter().flatten() {
        *field(marks, key) = value.clone();
    }
}

/// The selector of a subset's workload.
fn selector_of(set: &UnitedDeployment, subset: &str) -> Value {
    let mut selector = set.spec.selector.clone();
    let own = selector.match_labels.get_or_insert_default();
    own.insert(labels::SUBSET_NAME.to_owned(), subset.to_owned());
    json!(selector)
}

/// Sets how many pods keep the old revision, where a workload of that kind can say it.
fn partition(kind: ChildKind, partition: i32, spec: &mut Value) {
    if kind == ChildKind::Deployment {
        return;
    }
    let strategy = field(spec, "updateStrategy");
    if kind == ChildKind::CloneSet {
        *field(strategy, "partition") = json!(partition);
        return;
    }
    let of_type = strategy.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(of_type, "" | "RollingUpdate") {
        return;
    }
    if kind == ChildKind::StatefulSet {
        *field(strategy, "type") = json!("RollingUpdate");
    }
    *field(field(strategy, "rollingUpdate"), "partition") = json!(partition);
}

/// Sets how many pods may be unavailable during an update. The server refuses that beside a Deployment's type `Recreate`.
fn max_unavailable(kind: ChildKind, limit: i32, spec: &mut Value) {
    let strategy = match kind {
        ChildKind::CloneSet => field(spec, "updateStrategy"),
        ChildKind::Deployment => {
            let strategy = field(spec, "strategy");
            if strategy.get("type").and_then(Value::as_str) == Some("Recreate") {
                return;
            }
            field(strategy, "rollingUpdate")
        }
        ChildKind::StatefulSet | ChildKind::AdvancedStatefulSet => return,
    };
    *field(strategy, "maxUnavailable") = json!(limit.max(0));
}

/// Binds pods to the nodes of a subset: each term of the template gets the subset's expressions, too.
fn place(subset: &Subset, pod: &mut Value) {
    let expressions = subset.node_selector_term.match_expressions.iter().flatten();
    let expressions: Vec<Value> = expressions.map(|expression| json!(expression)).collect();
    let tolerations = subset.tolerations.iter().flatten();
    let tolerations: Vec<Value> = tolerations.map(|toleration| json!(toleration)).collect();
    if !expressions.is_empty() {
        let terms = TERMS.into_iter().fold(field(pod, "spec"), field);
        if terms.as_array().is_none_or(Vec::is_empty) {
            *terms = json!([{}]);
        }
        for term in terms.as_array_mut().into_iter().flatten() {
            extend(field(term, "matchExpressions"), &expressions);
        }
    }
    if !tolerations.is_empty() {
        extend(field(field(pod, "spec"), "tolerations"), &tolerations);
    }
}

/// Makes the UnitedDeployment the owner, beside owners that are there.
fn own_by(set: &UnitedDeployment, owners: &mut Value) {
    let reference = json!(Owner::of(set).reference());
    let own = |owner: &&mut Value| owner.get("uid") == reference.get("uid");
    match owners.as_array_mut().into_iter().flatten().find(own) {
        Some(owner) => *owner = reference,
        None => extend(owners, &[reference]),
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
