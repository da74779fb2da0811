//! The rules: the steps of a pass over a request, as a pure function.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::observe::Observed;
use crate::api::labels::{
    KRUISE_POD_READY, REQUEST_ACTIVE, REQUEST_POD_UID, REQUEST_STATUSES, REQUEST_UNREADY,
};
use crate::api::v1alpha1::{ContainerRecreateRequest, SyncedContainer};
use crate::pods::pod::{self, Pod};

/// How long the daemon may take to see a request.
const DAEMON_SECONDS_MAX: i64 = 60;

/// A step of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The pod is out of service for the request no more.
    PutBack,
    /// The finalizer goes.
    Release,
    /// The label of requests that have not ended goes.
    Deactivate,
    /// The request is deleted.
    Delete,
    /// The request ends, for this reason.
    Complete(&'static str),
    /// The annotation with the statuses of its containers gets this text.
    Sync(String),
    /// The request gets the finalizer.
    Hold,
    /// The pod is taken out of service.
    TakeOut,
    /// The annotation says since when the pod is out of service.
    NoteUnready,
}

/// The work of one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The steps, in this order.
    pub(super) steps: Vec<Step>,
    /// When to look again, if nothing happens before.
    pub(super) again: Option<Duration>,
}

impl Plan {
    fn of(step: Step) -> Self {
        Self {
            steps: vec![step],
            again: None,
        }
    }
}

/// The work of one pass over a request.
pub(super) fn plan(observed: &Observed) -> Plan {
    let request = &observed.request;
    let completed = request
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    if request.metadata.deletion_timestamp.is_some() || completed.is_some() {
        return finish(observed, completed);
    }
    let Some(pod) = observed.pod.as_deref().filter(|pod| is_its(request, pod)) else {
        return Plan::of(Step::Complete("pod has gone"));
    };
    let age = |seconds: i64| {
        left(
            observed.now,
            request.metadata.creation_timestamp.as_ref(),
            seconds,
        )
    };
    let mut again = None;
    if request.phase().is_empty() {
        match age(DAEMON_SECONDS_MAX) {
            None => return Plan::of(Step::Complete("daemon has not responded for a long time")),
            wait => again = wait,
        }
    }
    if let Some(seconds) = request.spec.active_deadline_seconds {
        match age(seconds) {
            None => {
                return Plan::of(Step::Complete(
                    "recreating has exceeded the activeDeadlineSeconds",
                ));
            }
            Some(wait) => again = Some(again.map_or(wait, |known: Duration| known.min(wait))),
        }
    }
    let mut plan = Plan {
        steps: Vec::new(),
        again,
    };
    if request.phase() == "Recreating" {
        let text = statuses(request, pod);
        if request.annotations().get(REQUEST_STATUSES) != Some(&text) {
            plan.steps.push(Step::Sync(text));
        }
        plan.steps.extend(take_out(request, pod));
    }
    plan
}

/// Whether a pod is that of a request, and stays.
fn is_its(request: &ContainerRecreateRequest, pod: &Pod) -> bool {
    let uid = request.labels().get(REQUEST_POD_UID);
    pod.metadata.deletion_timestamp.is_none() && uid.map(String::as_str) == Some(pod::uid(pod))
}

/// The time that is left until so many seconds after a time; none if it is over.
fn left(now: Timestamp, since: Option<&Time>, seconds: i64) -> Option<Duration> {
    let since = since?.0;
    // A deadline beyond all times never comes.
    let at = since
        .checked_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    let left = at.duration_since(now);
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

/// The steps for a request that has ended or is being deleted.
fn finish(observed: &Observed, completed: Option<&Time>) -> Plan {
    let request = &observed.request;
    let mut plan = Plan::default();
    if request
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == REQUEST_UNREADY)
    {
        let stays =
            |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && pod::has_gate(pod, KRUISE_POD_READY);
        if observed.pod.as_deref().map(|pod| &**pod).filter(stays).is_some() {
            plan.steps.push(Step::PutBack);
        }
        plan.steps.push(Step::Release);
    }
    if request.metadata.deletion_timestamp.is_some() {
        return plan;
    }
    if request.labels().contains_key(REQUEST_ACTIVE) {
        plan.steps.push(Step::Deactivate);
        return plan;
    }
    if let Some(seconds) = request.spec.ttl_seconds_after_finished {
        match left(observed.now, completed, i64::from(seconds)) {
            None => plan.steps.push(Step::Delete),
            wait => plan.again = wait,
        }
    }
    plan
}

/// The containers of a request that were started since it was made, as the pod's status has them, as JSON.
fn statuses(request: &ContainerRecreateRequest, pod: &Pod) -> String {
    let made = request
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0.as_second());
    let since = |started: &Time| Some(started.0.as_second()) >= made;
    let synced = |name: &str| {
        let mut known = pod::container_statuses(pod).iter();
        let status = known.find(|status| status.name == name)?;
        let is_new = status.state.started_at.as_ref().is_some_and(since);
        is_new.then(|| SyncedContainer {
            name: name.to_owned(),
            ready: status.ready,
            restart_count: status.restart_count,
            container_id: status.container_id.clone().unwrap_or_default(),
        })
    };
    let containers = request.spec.containers.iter();
    let synced: Vec<SyncedContainer> = containers
        .filter_map(|container| synced(&container.name))
        .collect();
    serde_json::to_string(&synced).unwrap_or_default()
}

/// The steps by which the pod of a request is taken out of service, if it is to be and is not yet. A pod that cannot be just waits.
fn take_out(request: &ContainerRecreateRequest, pod: &Pod) -> Vec<Step> {
    let strategy = request.spec.strategy.as_ref();
    let grace = strategy.and_then(|strategy| strategy.unready_grace_period_seconds);
    let noted = request.annotations().get(REQUEST_UNREADY);
    if grace.is_none() || noted.is_some_and(|noted| !noted.is_empty()) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    if pod::has_gate(pod, KRUISE_POD_READY) {
        if !request
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == REQUEST_UNREADY)
        {
            steps.push(Step::Hold);
        }
        steps.push(Step::TakeOut);
    }
    steps.push(Step::NoteUnready);
    steps
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
