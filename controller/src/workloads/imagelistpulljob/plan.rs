//! The rules of a list of images, as a pure function.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use crate::api::labels::REVISION_HASH;
use crate::api::v1beta1::{
    FailedImageStatus, ImageListPullJob, ImageListPullJobStatus, ImagePullJob, ImagePullJobStatus,
};
use crate::kit::Owner;

/// One moment of a list and of its jobs.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// The list.
    pub(super) list: Arc<ImageListPullJob>,
    /// Its jobs that are not being deleted, in the order in which they appeared.
    pub(super) jobs: Vec<Arc<ImagePullJob>>,
    /// When.
    pub(super) now: Timestamp,
}

/// The work of one pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// The list is being deleted, or over.
    Rest(Option<Duration>),
    /// The list has been over for as long as it may.
    Remove,
    /// The hash of its template is not in its labels: it gets it.
    Label(String),
    /// Jobs to make and to delete, and the status.
    Work(Work),
}

/// The work of a pass over a list that is not over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    /// The jobs to make.
    pub(super) create: Vec<Value>,
    /// The names and the uids of the jobs to delete.
    pub(super) delete: Vec<(String, String)>,
    /// The status.
    pub(super) status: ImageListPullJobStatus,
}

/// The work of one pass.
pub(super) fn plan(observed: &Observed) -> Plan {
    let list = &observed.list;
    if list.metadata.deletion_timestamp.is_some() {
        return Plan::Rest(None);
    }
    let hash = go_dump::pull_job_hash(&shared_json::to_value(&list.spec).unwrap_or_default());
    if list.labels().get(REVISION_HASH) != Some(&hash) {
        return Plan::Label(hash);
    }
    let end = list
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    if let Some(end) = end {
        return over(list, end.0, observed.now);
    }
    let template = template(list);
    let fits = |job: &ImagePullJob| match job.labels().get(REVISION_HASH) {
        Some(of_job) => *of_job == hash,
        None => template_of(job) == template,
    };
    let mut missing: Vec<&String> = list.spec.images.iter().collect();
    let mut delete = Vec::new();
    for job in &observed.jobs {
        // Of several jobs for an image the first stays.
        let at = missing.iter().position(|image| **image == job.spec.image);
        match at.filter(|_| fits(job)) {
            Some(at) => drop(missing.remove(at)),
            None => delete.push((job.name_any(), job.uid().unwrap_or_default())),
        }
    }
    Plan::Work(Work {
        create: missing
            .into_iter()
            .map(|image| job(list, image, &template, &hash))
            .collect(),
        delete,
        status: status(observed),
    })
}

/// The next step for a list that is over.
fn over(list: &ImageListPullJob, end: Timestamp, now: Timestamp) -> Plan {
    let Some(ttl) = list.spec.template.completion_policy.ttl_seconds_after_finished else {
        return Plan::Rest(None);
    };
    let left = SignedDuration::from_secs(i64::from(ttl)).saturating_sub(now.duration_since(end));
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => Plan::Rest(Some(left)),
        _ => Plan::Remove,
    }
}

/// The fields that a list and its jobs have in common.
fn template(list: &ImageListPullJob) -> Map<String, Value> {
    fields(serde_json::to_value(&list.spec), "images")
}

fn template_of(job: &ImagePullJob) -> Map<String, Value> {
    fields(serde_json::to_value(&job.spec), "image")
}

fn fields(spec: serde_json::Result<Value>, without: &str) -> Map<String, Value> {
    let mut fields = match spec {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.remove(without);
    fields
}

/// The job for an image.
fn job(list: &ImageListPullJob, image: &str, template: &Map<String, Value>, hash: &str) -> Value {
    let owner = Owner::of(list);
    let mut spec = template.clone();
    spec.insert("image".to_owned(), json!(image));
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {
            "generateName": format!("{}-", owner.key.name),
            "namespace": owner.key.namespace,
            "labels": { REVISION_HASH: hash },
            "ownerReferences": [owner.reference()],
        },
        "spec": spec,
    })
}

/// The status by the jobs that there are. A job that has not begun does not count.
fn status(observed: &Observed) -> ImageListPullJobStatus {
    let list = &observed.list;
    let known = list.status.as_ref().and_then(|status| status.start_time.clone());
    let mut status = ImageListPullJobStatus {
        start_time: Some(known.unwrap_or(Time(observed.now))),
        desired: i32::try_from(list.spec.images.len()).unwrap_or(i32::MAX),
        ..ImageListPullJobStatus::default()
    };
    let mut failed = Vec::new();
    for job in &observed.jobs {
        let of_job = job.status.as_ref().filter(|status| status.start_time.is_some());
        let Some(of_job) = of_job else { continue };
        let ImagePullJobStatus {
            desired,
            active,
            succeeded,
            failed: lost,
            ..
        } = *of_job;
        status.active += i32::from(active > 0);
        status.completed += i32::from(desired == succeeded + lost);
        status.succeeded += i32::from(desired == succeeded);
        if lost > 0 {
            failed.push(failure(job));
        }
    }
    let ends = list.spec.template.completion_policy.kind.as_deref() != Some("Never");
    status.completion_time = (ends && status.desired == status.completed).then_some(Time(observed.now));
    status.failed_image_statuses = (!failed.is_empty()).then_some(failed);
    status
}

fn failure(job: &ImagePullJob) -> FailedImageStatus {
    let name = job.name_any();
    let message =
        format!("Please check for details which nodes failed by 'kubectl get ImagePullJob {name}'.");
    FailedImageStatus {
        image_pull_job: Some(name),
        name: Some(job.spec.image.clone()),
        message: Some(message),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
