//! Images that are pulled before pods are updated in place (feature gate `PreDownloadImageForInPlaceUpdate`).

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::view::View;
use crate::api::labels;
use crate::kit::Owner;
use crate::kit::numbers::{Round, scaled};
use crate::pods::PodAction;
use crate::pods::inplace::change;
use crate::pods::revision;
use crate::workloads::cloneset::settings::DEFAULT_MAX_UNAVAILABLE;

/// Sets with no more pods than this are updated without.
const REPLICAS_MIN: i32 = 3;
/// How many nodes pull at the same time, unless the set says so.
const PARALLELISM: i32 = 1;
/// How long a node may take for it, in seconds.
const TIMEOUT_S: i64 = 300;
/// For how long a finished job is kept, in seconds.
const TTL_S: i64 = 600;

/// Makes the jobs for a new revision once, and takes them away when every pod has it.
pub(super) fn plan(view: &View<'_>) -> Vec<PodAction> {
    if !view.gates.predownload {
        return Vec::new();
    }
    let (current, update) = (&view.revisions.current, &view.revisions.update);
    if current.name == update.name {
        let jobs = view.observed.jobs.iter();
        return jobs
            .filter(|job| job.metadata.deletion_timestamp.is_none())
            .map(|job| PodAction::DeletePullJob { name: job.name_any() })
            .collect();
    }
    let stored = view
        .observed
        .revisions
        .iter()
        .find(|revision| revision.name_any() == update.name);
    let has_mark = |mark: &str| stored.is_some_and(|revision| revision.labels().contains_key(mark));
    if has_mark(labels::PREDOWNLOAD_CREATED) || has_mark(labels::PREDOWNLOAD_IGNORED) || waits(view) {
        return Vec::new();
    }
    if needless(view) {
        return vec![mark(&update.name, labels::PREDOWNLOAD_IGNORED)];
    }
    let mut actions: Vec<PodAction> = images(&current.template, &update.template)
        .into_iter()
        .map(|(container, image)| PodAction::CreatePullJob {
            object: job(view, &container, &image, stored.map(AsRef::as_ref)),
            image,
        })
        .collect();
    actions.push(mark(&update.name, labels::PREDOWNLOAD_CREATED));
    actions
}

fn mark(revision: &str, label: &'static str) -> PodAction {
    PodAction::MarkRevision {
        name: revision.to_owned(),
        label,
    }
}

/// Whether too few pods run the new revision yet: it may be a bad one.
fn waits(view: &View<'_>) -> bool {
    let Some(text) = annotation(view, labels::PREDOWNLOAD_MIN_UPDATED_READY) else {
        return false;
    };
    // What cannot be read counts as none, as in OpenKruise.
    let wanted = scaled(&int_or_string(text), view.settings.replicas, Round::Up).unwrap_or(0);
    let status = view.set().status.as_ref();
    let ready = status
        .filter(|status| status.update_revision == view.revisions.update.name)
        .map_or(0, |status| status.updated_ready_replicas);
    wanted > ready
}

/// Whether pulling early gains nothing: pods are recreated, there are few, or all are updated at once.
fn needless(view: &View<'_>) -> bool {
    let settings = &view.settings;
    if !matches!(view.update_type(), "InPlaceIfPossible" | "InPlaceOnly") || settings.replicas <= REPLICAS_MIN
    {
        return true;
    }
    let strategy = view.set().spec.update_strategy.as_ref();
    let default = IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned());
    let max_unavailable = strategy
        .and_then(|strategy| strategy.max_unavailable.as_ref())
        .unwrap_or(&default);
    let max_unavailable = scaled(max_unavailable, settings.replicas, Round::Down).unwrap_or(0);
    if settings.partition == 0 && max_unavailable >= settings.replicas {
        return true;
    }
    let (current, update) = (&view.revisions.current, &view.revisions.update);
    if view.gates.recreate_for_claims && !current.has_claims_of(update) {
        return true;
    }
    change::change(
        &current.template,
        &update.template,
        &update.name,
        0,
        view.gates.in_place(),
    )
    .is_none()
}

/// The images that differ, by container.
fn images(old: &Value, new: &Value) -> Vec<(String, String)> {
    let containers = |template: &Value| -> Vec<(String, String)> {
        let list = template.pointer("/spec/containers").and_then(Value::as_array);
        let text =
            |container: &Value, field: &str| Some(container.get(field).and_then(Value::as_str)?.to_owned());
        list.into_iter()
            .flatten()
            .filter_map(|container| Some((text(container, "name")?, text(container, "image")?)))
            .collect()
    };
    let old = containers(old);
    let mut images = containers(new);
    images.retain(|container| !old.contains(container));
    images
}

fn annotation<'v>(view: &'v View<'_>, key: &str) -> Option<&'v str> {
    view.set()
        .metadata
        .annotations
        .as_ref()?
        .get(key)
        .map(String::as_str)
}

fn int_or_string(text: &str) -> IntOrString {
    text.parse()
        .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int)
}

fn job(view: &View<'_>, container: &str, image: &str, stored: Option<&ControllerRevision>) -> Value {
    let update = &view.revisions.update.name;
    let hash = stored
        .and_then(|revision| revision.labels().get(labels::REVISION_LABEL).cloned())
        .unwrap_or_else(|| revision::short(update).to_owned());
    let set = view.set();
    let template = |path: &str| -> Map<String, Value> {
        let map = set.spec.template.pointer(path).and_then(Value::as_object);
        map.cloned().unwrap_or_default()
    };
    let mut job_labels = template("/metadata/labels");
    job_labels.insert(labels::REVISION_LABEL.to_owned(), json!(hash));
    let mut selector = json!(set.spec.selector);
    let mut requirements = set
        .spec
        .selector
        .match_expressions
        .clone()
        .map_or_else(Vec::new, |list| {
            list.into_iter().map(|requirement| json!(requirement)).collect()
        });
    requirements.push(json!({ "key": labels::REVISION_HASH, "operator": "NotIn", "values": [update, hash] }));
    if let Some(map) = selector.as_object_mut() {
        map.insert("matchExpressions".to_owned(), json!(requirements));
    }
    let parallelism = annotation(view, labels::PREDOWNLOAD_PARALLELISM)
        .map_or(IntOrString::Int(PARALLELISM), int_or_string);
    let timeout = annotation(view, labels::PREDOWNLOAD_TIMEOUT)
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(TIMEOUT_S);
    let mut sandbox = json!({ "labels": job_labels });
    let annotations = template("/metadata/annotations");
    if let (false, Some(map)) = (annotations.is_empty(), sandbox.as_object_mut()) {
        map.insert("annotations".to_owned(), json!(annotations));
    }
    let mut spec = json!({
        "image": image,
        "podSelector": selector,
        "parallelism": parallelism,
        "pullPolicy": { "backoffLimit": 1, "timeoutSeconds": timeout },
        "completionPolicy": { "type": "Always", "ttlSecondsAfterFinished": TTL_S },
        "sandboxConfig": sandbox,
    });
    let secrets = set
        .spec
        .template
        .pointer("/spec/imagePullSecrets")
        .and_then(Value::as_array);
    let secrets: Vec<&Value> = secrets
        .into_iter()
        .flatten()
        .filter_map(|secret| secret.get("name"))
        .collect();
    if let (false, Some(map)) = (secrets.is_empty(), spec.as_object_mut()) {
        map.insert("pullSecrets".to_owned(), json!(secrets));
    }
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ImagePullJob",
        "metadata": {
            "name": format!("{update}-{container}"),
            "namespace": set.namespace(),
            "labels": job_labels,
            "ownerReferences": [Owner::of(set).reference()],
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(json!([{ "name": "a", "image": "x:1" }]), json!([{ "name": "a", "image": "x:1" }]), &[])]
    #[case(json!([{ "name": "a", "image": "x:1" }, { "name": "b", "image": "y:1" }]),
        json!([{ "name": "a", "image": "x:2" }, { "name": "b", "image": "y:1" }]), &["a x:2"])]
    #[case(json!([]), json!([{ "name": "a", "image": "x:1" }]), &["a x:1"])]
    fn images_that_differ(#[case] old: Value, #[case] new: Value, #[case] want: &[&str]) {
        let template = |containers: Value| json!({ "spec": { "containers": containers } });
        let got: Vec<String> = images(&template(old), &template(new))
            .into_iter()
            .map(|(container, image)| format!("{container} {image}"))
            .collect();
        assert_eq!(got, want);
    }
}
