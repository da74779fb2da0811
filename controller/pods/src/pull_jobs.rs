//! The ImagePullJobs by which images are on nodes before pods need them there.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kruise_api::labels;
use kruise_api::v1beta1::ImagePullJob;
use kruise_kit::Owner;
use kruise_kit::numbers::{Round, scaled};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{PodAction, Revision, revision};

/// How many nodes pull at the same time, unless the owner says so.
const PARALLELISM: i32 = 1;
/// How long a node may take for it, in seconds.
const TIMEOUT_S: i64 = 300;
/// For how long a finished job is kept, in seconds.
const TTL_S: i64 = 600;

/// The parts that the jobs of an owner are made of.
pub struct JobSource<'a> {
    /// The owner.
    pub owner: &'a Owner,
    /// Its annotations, which say how many nodes pull at a time and how long each may take.
    pub annotations: &'a BTreeMap<String, String>,
    /// Its selector.
    pub selector: &'a LabelSelector,
    /// Its pod template.
    pub template: &'a Value,
    /// The name of the revision that is rolled out.
    pub update: &'a str,
    /// The revisions that there are.
    pub revisions: &'a [Arc<ControllerRevision>],
}

impl JobSource<'_> {
    fn stored(&self) -> Option<&ControllerRevision> {
        let mut revisions = self.revisions.iter();
        let stored = revisions.find(|revision| revision.name_any() == self.update);
        stored.map(AsRef::as_ref)
    }

    /// Whether the jobs of the revision were made already, or are not to be made.
    pub fn is_decided(&self) -> bool {
        let has = |mark: &str| {
            self.stored()
                .is_some_and(|revision| revision.labels().contains_key(mark))
        };
        has(labels::PREDOWNLOAD_CREATED) || has(labels::PREDOWNLOAD_IGNORED)
    }

    /// Notes that no jobs are made for the revision.
    pub fn ignore(&self) -> Vec<PodAction> {
        vec![self.mark(labels::PREDOWNLOAD_IGNORED)]
    }

    /// Makes the jobs for these images, by container, and notes that.
    pub fn create(&self, images: Vec<(String, String)>) -> Vec<PodAction> {
        let mut actions: Vec<PodAction> = images
            .into_iter()
            .map(|(container, image)| PodAction::CreatePullJob {
                object: self.job(&container, &image),
                image,
            })
            .collect();
        actions.push(self.mark(labels::PREDOWNLOAD_CREATED));
        actions
    }

    fn mark(&self, label: &'static str) -> PodAction {
        PodAction::MarkRevision {
            name: self.update.to_owned(),
            label,
        }
    }

    fn job(&self, container: &str, image: &str) -> Value {
        let update = self.update;
        let hash = self
            .stored()
            .and_then(|revision| revision.labels().get(labels::REVISION_LABEL).cloned())
            .unwrap_or_else(|| revision::short(update).to_owned());
        let template = |path: &str| -> Map<String, Value> {
            let map = self.template.pointer(path).and_then(Value::as_object);
            map.cloned().unwrap_or_default()
        };
        let mut job_labels = template("/metadata/labels");
        job_labels.insert(labels::REVISION_LABEL.to_owned(), json!(hash));
        let mut selector = json!(self.selector);
        let requirements = self.selector.match_expressions.iter().flatten();
        let mut requirements: Vec<Value> = requirements.map(|requirement| json!(requirement)).collect();
        requirements
            .push(json!({ "key": labels::REVISION_HASH, "operator": "NotIn", "values": [update, hash] }));
        if let Some(map) = selector.as_object_mut() {
            map.insert("matchExpressions".to_owned(), json!(requirements));
        }
        let annotation = |key: &str| self.annotations.get(key).map(String::as_str);
        let parallelism =
            annotation(labels::PREDOWNLOAD_PARALLELISM).map_or(IntOrString::Int(PARALLELISM), int_or_string);
        let timeout = annotation(labels::PREDOWNLOAD_TIMEOUT)
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
        let secrets = self.template.pointer("/spec/imagePullSecrets");
        let secrets = secrets.and_then(Value::as_array).into_iter().flatten();
        let secrets: Vec<&Value> = secrets.filter_map(|secret| secret.get("name")).collect();
        if let (false, Some(map)) = (secrets.is_empty(), spec.as_object_mut()) {
            map.insert("pullSecrets".to_owned(), json!(secrets));
        }
        json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "ImagePullJob",
            "metadata": {
                "name": format!("{update}-{container}"),
                "namespace": self.owner.key.namespace,
                "labels": job_labels,
                "ownerReferences": [self.owner.reference()],
            },
            "spec": spec,
        })
    }
}

/// The revisions of an owner whose pods are updated in place, and how far they are.
pub struct Rollout<'a> {
    /// The revision that the pods had.
    pub current: &'a Revision,
    /// The revision that is rolled out.
    pub update: &'a Revision,
    /// How many pods the owner has.
    pub replicas: i32,
    /// How many of them are of the new revision and ready.
    pub updated_ready: i32,
}

/// Makes the jobs for a new revision once, and takes them away when every pod has it. `is_needless` says whether pulling early gains
/// nothing.
pub fn plan(
    source: &JobSource<'_>,
    rollout: &Rollout<'_>,
    jobs: &[Arc<ImagePullJob>],
    is_needless: impl FnOnce() -> bool,
) -> Vec<PodAction> {
    if rollout.current.name == rollout.update.name {
        return delete(jobs);
    }
    if source.is_decided() || waits(source, rollout) {
        return Vec::new();
    }
    if is_needless() {
        return source.ignore();
    }
    source.create(images(&[&rollout.current.template], &rollout.update.template))
}

/// Whether too few pods run the new revision yet: it may be a bad one.
fn waits(source: &JobSource<'_>, rollout: &Rollout<'_>) -> bool {
    let text = source.annotations.get(labels::PREDOWNLOAD_MIN_UPDATED_READY);
    // A text that cannot be read counts as none, as in OpenKruise.
    let wanted = text.and_then(|text| scaled(&int_or_string(text), rollout.replicas, Round::Up).ok());
    wanted.unwrap_or(0) > rollout.updated_ready
}

/// Takes jobs away.
pub fn delete(jobs: &[Arc<ImagePullJob>]) -> Vec<PodAction> {
    jobs.iter()
        .filter(|job| job.metadata.deletion_timestamp.is_none())
        .map(|job| PodAction::DeletePullJob { name: job.name_any() })
        .collect()
}

/// The images of a template that one of the old ones has otherwise, or none has, by container.
pub fn images(old: &[&Value], new: &Value) -> Vec<(String, String)> {
    let containers = |template: &Value| -> Vec<(String, String)> {
        let list = template.pointer("/spec/containers").and_then(Value::as_array);
        let text =
            |container: &Value, field: &str| Some(container.get(field).and_then(Value::as_str)?.to_owned());
        list.into_iter()
            .flatten()
            .filter_map(|container| Some((text(container, "name")?, text(container, "image")?)))
            .collect()
    };
    let old: Vec<(String, String)> = old.iter().flat_map(|template| containers(template)).collect();
    let mut images = containers(new);
    images.retain(|(name, image)| {
        let mut same = old.iter().filter(|(other, _)| other == name).peekable();
        same.peek().is_none() || same.any(|(_, other)| other != image)
    });
    images
}

/// A number, or any other text.
fn int_or_string(text: &str) -> IntOrString {
    text.parse()
        .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[json!([{ "name": "a", "image": "x:1" }])], json!([{ "name": "a", "image": "x:1" }]), &[])]
    #[case(&[json!([{ "name": "a", "image": "x:1" }, { "name": "b", "image": "y:1" }])],
        json!([{ "name": "a", "image": "x:2" }, { "name": "b", "image": "y:1" }]), &["a x:2"])]
    #[case(&[json!([])], json!([{ "name": "a", "image": "x:1" }]), &["a x:1"])]
    #[case(&[], json!([{ "name": "a", "image": "x:1" }]), &["a x:1"])]
    #[case(&[json!([{ "name": "a", "image": "x:1" }]), json!([{ "name": "a", "image": "x:2" }])],
        json!([{ "name": "a", "image": "x:1" }]), &["a x:1"])]
    #[case(&[json!([{ "name": "a", "image": "x:1" }]), json!([{ "name": "b", "image": "x:2" }])],
        json!([{ "name": "a", "image": "x:1" }]), &[])]
    fn images_that_differ(#[case] old: &[Value], #[case] new: Value, #[case] want: &[&str]) {
        let template = |containers: &Value| json!({ "spec": { "containers": containers } });
        let old: Vec<Value> = old.iter().map(template).collect();
        let old: Vec<&Value> = old.iter().collect();
        let got: Vec<String> = images(&old, &template(&new))
            .into_iter()
            .map(|(container, image)| format!("{container} {image}"))
            .collect();
        assert_eq!(got, want);
    }
}
