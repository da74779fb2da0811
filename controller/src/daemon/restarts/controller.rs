//! The reconciler of requests: from the requests of a pod to the end of the first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::LifecycleHandler;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::queue::queue;
use super::states::states;
use super::stopper::{GRACE_SECONDS, Stop, Stopper};
use super::walk::{Verdict, note, walk};
use crate::api::labels::{REQUEST_POD_UID, REQUEST_UNREADY};
use crate::api::v1alpha1::{ContainerRecreateRequest, ContainerRecreateState, PreStop};
use crate::daemon::runtime::{RunningContainer, RuntimeError};
use crate::kit::expectations::Expectations;
use crate::kit::{ActError, Change, Informer, Kind, Next, ObjectKey, Reconciler, Watches, WorkQueue};
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::Pod;

/// How much later than asked the first container is stopped: times of requests are whole seconds (OpenKruise: 100 ms).
const UNREADY_SLACK: Duration = Duration::from_millis(100);

/// The reconciler. Its keys are pods.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) requests: Informer<ContainerRecreateRequest>,
    pub(super) pods: Option<Informer<Pod>>,
    pub(super) stopper: Stopper,
    pub(super) expectations: Arc<Expectations>,
    pub(super) queue: Arc<WorkQueue<ObjectKey>>,
}

/// Whether the first container may be stopped.
enum Unready {
    /// It may.
    Over,
    /// Not before this time has passed.
    Left(Duration),
    /// The manager has not taken the pod out of service yet.
    Unknown,
    /// The time cannot be read, and this is why.
    Broken(String),
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "containerrecreate"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        if let Some(pods) = &self.pods {
            watches.wait_for(pods);
        }
        // The end of a request is the turn of the next.
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.requests, move |change, queue| {
            if let Change::Deleted(request) = change {
                expectations.forget_object(request.as_ref());
            }
            let (Change::Added(request) | Change::Updated(_, request) | Change::Deleted(request)) = change;
            let namespace = request.namespace().unwrap_or_default();
            queue.add(ObjectKey::new(&namespace, &request.spec.pod_name));
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        match self.look_at(key).await {
            // A request that has gone needs nothing more.
            Err(error) if error.kind == Kind::NotFound => Ok(Next::Event),
            result => result,
        }
    }
}

impl Controller {
    async fn look_at(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let mut requests = self.requests.in_namespace(&key.namespace);
        requests.retain(|request| request.spec.pod_name == key.name);
        let unseen =
            |request: &Arc<ContainerRecreateRequest>| self.expectations.unseen_object(request.as_ref());
        if let Some(left) = requests.iter().filter_map(unseen).min() {
            return Ok(Next::After(left));
        }
        let queue = queue(requests);
        for request in &queue.waiting {
            self.patch(request, json!({ "phase": "Pending" })).await?;
        }
        let Some(request) = queue.first else {
            return Ok(Next::Event);
        };
        if request.phase() != "Recreating" {
            self.patch(&request, json!({ "phase": "Recreating" })).await?;
            return Ok(Next::Event);
        }
        match unready(&request, self.clock.now()) {
            Unready::Over => self.recreate(key, &request).await,
            Unready::Left(left) => Ok(Next::After(left)),
            Unready::Unknown => Ok(Next::Event),
            Unready::Broken(message) => {
                self.complete(&request, Some(message)).await?;
                Ok(Next::Event)
            }
        }
    }

    /// Carries out a request: at most one container is stopped in a pass, and its state then is written before anything else is done.
    async fn recreate(&self, key: &ObjectKey, request: &ContainerRecreateRequest) -> Result<Next, ActError> {
        let uid = request.labels().get(REQUEST_POD_UID).cloned().unwrap_or_default();
        let found = match self.stopper.runtime.containers(&uid).await {
            Ok(found) => found,
            Err(error) => {
                let message = format!("failed to find runtime service: {error}");
                self.complete(request, Some(message)).await?;
                return Ok(Next::Event);
            }
        };
        let known = request
            .status
            .iter()
            .flat_map(|status| status.container_recreate_states.iter().cloned());
        let known: Vec<ContainerRecreateState> = known.collect();
        let mut states = states(request, &found, self.clock.now());
        if states != known {
            self.patch(request, json!({ "containerRecreateStates": states }))
                .await?;
            return Ok(Next::Event);
        }
        let strategy = request.spec.strategy.clone().unwrap_or_default();
        let mut verdict = walk(&mut states, &strategy);
        while let Verdict::Kill(place) = verdict {
            let Some(state) = states.get_mut(place) else { break };
            let stopped = self.stop(key, request, &uid, place, &found).await;
            if !note(state, stopped, &strategy) {
                break;
            }
            verdict = walk(&mut states, &strategy);
        }
        if states != known {
            self.patch(request, json!({ "containerRecreateStates": states }))
                .await?;
            return Ok(Next::Event);
        }
        if verdict == Verdict::Complete {
            self.complete(request, None).await?;
        } else if let Some(seconds) = strategy
            .min_started_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            && seconds > 0
        {
            self.queue
                .add_surely_after(key.clone(), Duration::from_secs(seconds));
        }
        Ok(Next::Event)
    }

    /// Stops the container at a place of the request's list.
    async fn stop(
        &self,
        key: &ObjectKey,
        request: &ContainerRecreateRequest,
        uid: &str,
        place: usize,
        found: &[RunningContainer],
    ) -> Result<(), RuntimeError> {
        let Some(container) = request.spec.containers.get(place) else {
            return Ok(());
        };
        let Some(running) = found.iter().find(|found| found.name == container.name) else {
            return Ok(());
        };
        let grace = request
            .spec
            .strategy
            .as_ref()
            .and_then(|strategy| strategy.termination_grace_period_seconds);
        let named = container.ports.iter().flatten();
        let named = named.filter_map(|port| Some((port.name.clone()?, port.container_port)));
        let pod = self.pods.as_ref().and_then(|pods| pods.get(key));
        let pod = pod.filter(|pod| pod.uid().as_deref() == Some(uid));
        let stop = Stop {
            pod: key,
            uid,
            address: pod.as_deref().map_or("", |pod| &pod.status.ip),
            id: &running.id,
            name: &container.name,
            field_path: format!("spec.containers{{{}}}", container.name),
            message: format!(
                "Stopping container {} by ContainerRecreateRequest {}",
                container.name,
                request.name_any()
            ),
            hook: container.pre_stop.as_ref().map(|hook| handler(hook, running)),
            ports: named.collect::<BTreeMap<String, i32>>(),
            grace_seconds: grace
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or(GRACE_SECONDS),
        };
        self.stopper.stop(stop).await
    }

    async fn complete(
        &self,
        request: &ContainerRecreateRequest,
        message: Option<String>,
    ) -> Result<(), ActError> {
        let mut status = json!({ "phase": "Completed", "completionTime": rfc3339(self.clock.now()) });
        if let Some(message) = message {
            status["message"] = json!(message);
        }
        self.patch(request, status).await
    }

    async fn patch(&self, request: &ContainerRecreateRequest, status: Value) -> Result<(), ActError> {
        let api: Api<ContainerRecreateRequest> =
            Api::namespaced(self.client.clone(), &request.namespace().unwrap_or_default());
        let patch = json!({ "metadata": { "uid": request.metadata.uid }, "status": status });
        let params = PatchParams::default();
        let written = api
            .patch_status(&request.name_any(), &params, &Patch::Merge(&patch))
            .await?;
        self.expectations.expect_object(&written);
        Ok(())
    }
}

/// The hook of a request. One that is empty stands for one that requests have no field for: the runtime has it.
fn handler(hook: &PreStop, running: &RunningContainer) -> LifecycleHandler {
    if let (true, Some(own)) = (*hook == PreStop::default(), &running.pre_stop) {
        return own.clone();
    }
    LifecycleHandler {
        exec: hook.exec.clone(),
        http_get: hook.http_get.clone(),
        tcp_socket: hook.tcp_socket.clone(),
        ..LifecycleHandler::default()
    }
}

/// Whether the pod of a request has been out of service for long enough.
fn unready(request: &ContainerRecreateRequest, now: Timestamp) -> Unready {
    let strategy = request.spec.strategy.as_ref();
    let Some(seconds) = strategy.and_then(|strategy| strategy.unready_grace_period_seconds) else {
        return Unready::Over;
    };
    let noted = request
        .annotations()
        .get(REQUEST_UNREADY)
        .map_or("", String::as_str);
    if noted.is_empty() {
        return Unready::Unknown;
    }
    let since: Timestamp = match noted.parse() {
        Ok(since) => since,
        Err(error) => return Unready::Broken(format!("failed to parse unready time {noted}: {error}")),
    };
    // A time beyond all times never comes.
    let until = since
        .checked_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    match Duration::try_from(until.duration_since(now)) {
        Ok(left) if !left.is_zero() => Unready::Left(left.saturating_add(UNREADY_SLACK)),
        _ => Unready::Over,
    }
}
