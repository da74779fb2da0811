//! The jobs of an AdvancedCronJob, of three kinds.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;

use super::SCHEDULED_AT;
use crate::api::v1beta1::{AdvancedCronJob, BroadcastJob, ImageListPullJob};

/// The kinds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JobKind {
    /// The API server's own.
    Job,
    /// One pod on each node.
    Broadcast,
    /// Images for each node.
    ImageList,
}

impl JobKind {
    /// The kind of the jobs that `cron` makes.
    pub(super) fn of(cron: &AdvancedCronJob) -> Self {
        let template = &cron.spec.template;
        if template.job_template.is_some() {
            Self::Job
        } else if template.image_list_pull_job_template.is_some() {
            Self::ImageList
        } else {
            Self::Broadcast
        }
    }

    /// Its name in the API.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::Broadcast => "BroadcastJob",
            Self::ImageList => "ImageListPullJob",
        }
    }

    /// Its group and version.
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::Job => "batch/v1",
            Self::Broadcast | Self::ImageList => "apps.kruise.io/v1beta1",
        }
    }
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It is not over.
    Active,
    /// It ended well.
    Successful,
    /// It failed.
    Failed,
}

/// A job of an AdvancedCronJob.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Child {
    /// Its kind.
    pub(super) kind: JobKind,
    /// The job.
    pub(super) reference: ObjectReference,
    /// How it stands.
    pub(super) state: State,
    /// When it began, if it did.
    pub(super) start: Option<Timestamp>,
    /// The time for which it was made, if it says so.
    pub(super) scheduled: Option<Timestamp>,
}

/// A job of the API server as the cache holds it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct CachedJob {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: JobStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobStatus {
    conditions: Option<Vec<JobCondition>>,
    start_time: Option<Time>,
}

#[derive(Debug, Clone, Deserialize)]
struct JobCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Resource for CachedJob {
    type DynamicType = ();
    type Scope = <Job as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Job::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Job::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Job::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Job::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The first condition that says that a job is over.
fn state<'c>(mut conditions: impl Iterator<Item = (&'c str, &'c str)>) -> State {
    let last = conditions.find(|(kind, status)| matches!(*kind, "Complete" | "Failed") && *status == "True");
    match last {
        Some(("Complete", _)) => State::Successful,
        Some(_) => State::Failed,
        None => State::Active,
    }
}

fn child(kind: JobKind, metadata: &ObjectMeta, state: State, start: Option<&Time>) -> Child {
    let scheduled = metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(SCHEDULED_AT));
    Child {
        kind,
        reference: ObjectReference {
            api_version: Some(kind.api_version().to_owned()),
            kind: Some(kind.name().to_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            field_path: None,
        },
        state,
        start: start.map(|time| time.0),
        scheduled: scheduled.and_then(|time| time.parse().ok()),
    }
}

impl From<&CachedJob> for Child {
    fn from(job: &CachedJob) -> Self {
        let conditions = job.status.conditions.iter().flatten();
        let state = state(conditions.map(|it| (it.kind.as_str(), it.status.as_str())));
        child(JobKind::Job, &job.metadata, state, job.status.start_time.as_ref())
    }
}

impl From<&BroadcastJob> for Child {
    fn from(job: &BroadcastJob) -> Self {
        let status = job.status.as_ref();
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        let state = state(conditions.map(|it| (it.kind.as_str(), it.status.as_str())));
        let start = status.and_then(|status| status.start_time.as_ref());
        child(JobKind::Broadcast, &job.metadata, state, start)
    }
}

impl From<&ImageListPullJob> for Child {
    fn from(job: &ImageListPullJob) -> Self {
        let status = job.status.as_ref();
        let state = match status.filter(|status| status.completion_time.is_some()) {
            None => State::Active,
            Some(status) if status.succeeded == status.desired => State::Successful,
            Some(_) => State::Failed,
        };
        let start = status.and_then(|status| status.start_time.as_ref());
        child(JobKind::ImageList, &job.metadata, state, start)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const METADATA: &str =
        r#"{ "name": "a-1", "annotations": { "apps.kruise.io/scheduled-at": "1970-01-01T00:01:00Z" } }"#;

    fn object(status: Value) -> Value {
        json!({ "metadata": serde_json::from_str::<Value>(METADATA).unwrap(), "spec": { "template": {}, "images": [],
            "completionPolicy": {} }, "status": status })
    }

    fn conditions(all: &[(&str, &str)]) -> Value {
        let all: Vec<Value> = all
            .iter()
            .map(|(kind, status)| json!({ "type": kind, "status": status }))
            .collect();
        json!({ "startTime": "1970-01-01T00:01:01Z", "conditions": all })
    }

    /// Jobs and BroadcastJobs are read alike.
    #[rstest]
    #[case::running(&[], State::Active)]
    #[case::complete(&[("SuccessCriteriaMet", "True"), ("Complete", "True")], State::Successful)]
    #[case::failed(&[("Failed", "True")], State::Failed)]
    #[case::the_first_counts(&[("Failed", "True"), ("Complete", "True")], State::Failed)]
    #[case::not_any_more(&[("Failed", "False")], State::Active)]
    fn states(#[case] all: &[(&str, &str)], #[case] expect: State) {
        let status = conditions(all);
        let job: CachedJob = serde_json::from_value(object(status.clone())).unwrap();
        let broadcast: BroadcastJob = serde_json::from_value(object(status)).unwrap();
        for child in [Child::from(&job), Child::from(&broadcast)] {
            let times = [child.scheduled, child.start].map(|time| time.map(Timestamp::as_second));
            assert_eq!((child.state, times), (expect, [Some(60), Some(61)]));
        }
    }

    #[rstest]
    #[case::running(json!({ "desired": 2, "succeeded": 2 }), State::Active)]
    #[case::all(json!({ "desired": 2, "succeeded": 2, "completionTime": "1970-01-01T00:01:01Z" }), State::Successful)]
    #[case::row_25(json!({ "desired": 2, "succeeded": 1, "completionTime": "1970-01-01T00:01:01Z" }), State::Failed)]
    fn states_of_images(#[case] status: Value, #[case] expect: State) {
        let job: ImageListPullJob = serde_json::from_value(object(status)).unwrap();
        assert_eq!(Child::from(&job).state, expect);
    }

    #[test]
    fn a_bad_time_is_none() {
        let mut job = object(json!({}));
        job["metadata"]["annotations"][SCHEDULED_AT] = json!("yesterday");
        let job: CachedJob = serde_json::from_value(job).unwrap();
        assert_eq!(Child::from(&job).scheduled, None);
    }
}
