//! One pod on one node, from its admission to its removal.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventType, Random};
use http::header::{CONTENT_TYPE, USER_AGENT};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::images;
use super::kubelet::Kubelet;
use super::pod_status::{self, ContainerRecord, ContainerState, PodRecord};
use super::timing::vary;
use crate::meta::{ObjectMeta, at};
use crate::server::rfc3339;

/// How long the first retry of a pull waits, and the longest that any waits.
const PULL_BACKOFF_MIN: Duration = Duration::from_secs(10);
const PULL_BACKOFF_MAX: Duration = Duration::from_secs(300);

pub(super) struct PodWorker {
    kubelet: Arc<Kubelet>,
    inbox: watch::Receiver<Arc<Value>>,
    pod: Arc<Value>,
    record: PodRecord,
    random: Random,
    pull_backoff: Duration,
}

/// Why a worker stops.
enum End {
    /// The pod is gone from the API.
    Gone,
}

impl PodWorker {
    pub(super) fn new(
        kubelet: Arc<Kubelet>,
        inbox: watch::Receiver<Arc<Value>>,
        pod_ip: String,
        random: Random,
    ) -> Self {
        let pod = Arc::clone(&inbox.borrow());
        let containers = specs(&pod)
            .iter()
            .map(|spec| ContainerRecord::new(name_of(spec)))
            .collect();
        let record = PodRecord {
            containers,
            sandbox: false,
            start_time: rfc3339(kubelet.clock.now_seconds()),
            host_ip: kubelet.spec.address.clone(),
            pod_ip,
            over: false,
        };
        Self {
            kubelet,
            inbox,
            pod,
            record,
            random,
            pull_backoff: PULL_BACKOFF_MIN,
        }
    }

    /// Runs the pod until it is removed.
    pub(super) async fn run(mut self) {
        if matches!(
            at(&self.pod, "status.phase").and_then(Value::as_str),
            Some("Succeeded" | "Failed")
        ) {
            // Nothing runs any more; it only has to be let go when it is deleted.
            self.record.over = true;
        }
        // Ending is no failure: the pod is gone, and nobody waits for the worker.
        let _ended = self.live().await;
    }

    async fn live(&mut self) -> Result<(), End> {
        if !self.record.over {
            self.pause(self.kubelet.timing.admit).await?;
            self.write_status().await;
            if !self.is_terminating() {
                self.pause(self.kubelet.timing.sandbox).await?;
                self.record.sandbox = true;
            }
        }
        loop {
            if self.is_terminating() {
                return self.terminate().await;
            }
            let retry = if self.record.over {
                None
            } else {
                self.sync_containers().await?
            };
            self.write_status().await;
            self.wait(retry).await?;
            if !self.is_terminating() {
                self.pause(self.kubelet.timing.observe).await?;
            }
        }
    }

    fn is_terminating(&self) -> bool {
        self.pod.is_terminating()
    }

    /// Takes the newest pod; an error once it is gone.
    fn refresh(&mut self) -> Result<(), End> {
        if self.inbox.has_changed().is_err() {
            return Err(End::Gone);
        }
        let newest = Arc::clone(&self.inbox.borrow_and_update());
        // The answer to our own write may be newer than what the watch has brought so far.
        if newest.revision() >= self.pod.revision() {
            self.pod = newest;
        }
        Ok(())
    }

    /// Lets time pass, then takes the newest pod.
    async fn pause(&mut self, duration: Duration) -> Result<(), End> {
        let duration = vary(duration, &mut self.random);
        tokio::time::sleep(duration).await;
        self.refresh()
    }

    /// Waits for the pod to change, or for a retry to be due.
    async fn wait(&mut self, retry: Option<Duration>) -> Result<(), End> {
        let changed = async {
            match retry {
                Some(delay) => tokio::time::timeout(delay, self.inbox.changed())
                    .await
                    .unwrap_or(Ok(())),
                None => self.inbox.changed().await,
            }
        };
        changed.await.map_err(|_| End::Gone)?;
        self.refresh()
    }

    /// Starts what should run and does not, restarts what was changed. Returns when to try again what failed.
    async fn sync_containers(&mut self) -> Result<Option<Duration>, End> {
        let mut retry = None;
        for index in 0..self.record.containers.len() {
            let Some(spec) = self.spec_of(index) else { continue };
            let image = spec
                .get("image")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let Some(record) = self.record.containers.get(index) else {
                continue;
            };
            if record.is_running() {
                if record.spec_image == image {
                    retry = earlier(retry, self.probe(index, &spec));
                    continue;
                }
                self.event(
                    &spec,
                    EventType::Normal,
                    "Killing",
                    format!(
                        "Container {} definition changed, will be restarted",
                        name_of(&spec)
                    ),
                );
                self.write_status().await;
                self.end_container(index, 0);
            }
            match self.pull(index, &spec, &image).await? {
                Ok(()) => {
                    self.start(index, &spec, &image).await?;
                    retry = earlier(retry, self.probe(index, &spec));
                }
                Err(delay) => retry = earlier(retry, Some(delay)),
            }
            if self.is_terminating() {
                return Ok(None);
            }
        }
        Ok(retry)
    }

    fn spec_of(&self, index: usize) -> Option<Value> {
        let name = &self.record.containers.get(index)?.name;
        specs(&self.pod)
            .iter()
            .find(|spec| name_of(spec) == name)
            .cloned()
    }

    /// Gets the image onto the node; the inner error is when to try again.
    async fn pull(&mut self, index: usize, spec: &Value, image: &str) -> Result<Result<(), Duration>, End> {
        let node = self.kubelet.spec.name.clone();
        let policy = spec
            .get("imagePullPolicy")
            .and_then(Value::as_str)
            .unwrap_or("IfNotPresent");
        let known = self.kubelet.images.get(image);
        if policy != "Always" && self.kubelet.images.is_on(&node, image) && known.failure.is_none() {
            let text = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            self.event(spec, EventType::Normal, "Pulled", text);
            return Ok(Ok(()));
        }
        self.event(
            spec,
            EventType::Normal,
            "Pulling",
            format!("Pulling image \"{image}\""),
        );
        let took = vary(known.pull, &mut self.random);
        tokio::time::sleep(took).await;
        self.refresh()?;
        if known.failure.is_some() {
            return Ok(Err(self.pull_failed(index, spec, image).await));
        }
        self.kubelet.images.mark_pulled(&node, image);
        self.pull_backoff = PULL_BACKOFF_MIN;
        let (ms, size) = (took.as_millis(), known.size_bytes);
        let text = format!(
            "Successfully pulled image \"{image}\" in {ms}ms ({ms}ms including waiting). Image size: {size} bytes."
        );
        self.event(spec, EventType::Normal, "Pulled", text);
        Ok(Ok(()))
    }

    /// What the kubelet says of an image that cannot be had; gives the time until the next try.
    async fn pull_failed(&mut self, index: usize, spec: &Value, image: &str) -> Duration {
        let name = images::canonical(image);
        let why = format!(
            "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \
             \"{name}\": {name}: not found"
        );
        self.event(
            spec,
            EventType::Warning,
            "Failed",
            format!("Failed to pull image \"{image}\": {why}"),
        );
        self.event(
            spec,
            EventType::Warning,
            "Failed",
            "Error: ErrImagePull".to_owned(),
        );
        self.set_waiting(index, "ErrImagePull", why.clone());
        self.write_status().await;
        let message = format!("Back-off pulling image \"{image}\"");
        self.event(spec, EventType::Normal, "BackOff", message.clone());
        self.event(
            spec,
            EventType::Warning,
            "Failed",
            "Error: ImagePullBackOff".to_owned(),
        );
        self.set_waiting(
            index,
            "ImagePullBackOff",
            format!("{message}: ErrImagePull: {why}"),
        );
        let delay = self.pull_backoff;
        self.pull_backoff = (delay * 2).min(PULL_BACKOFF_MAX);
        delay
    }

    fn set_waiting(&mut self, index: usize, reason: &str, message: String) {
        if let Some(record) = self.record.containers.get_mut(index) {
            record.state = ContainerState::Waiting {
                reason: reason.to_owned(),
                message,
            };
        }
    }

    async fn start(&mut self, index: usize, spec: &Value, image: &str) -> Result<(), End> {
        self.pause(self.kubelet.timing.create).await?;
        self.event(spec, EventType::Normal, "Created", "Container created".to_owned());
        self.pause(self.kubelet.timing.start).await?;
        self.event(spec, EventType::Normal, "Started", "Container started".to_owned());
        let mut bytes = [0_u8; 32];
        self.random.fill(&mut bytes);
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let started = rfc3339(self.kubelet.clock.now_seconds());
        let image_id = self.kubelet.images.image_id(image);
        let Some(record) = self.record.containers.get_mut(index) else {
            return Ok(());
        };
        if record.last.is_some() {
            record.restarts += 1;
        }
        record.spec_image = image.to_owned();
        record.state = ContainerState::Running {
            id: format!("containerd://{id}"),
            image: images::canonical(image),
            image_id,
            started,
            ready: spec.get("readinessProbe").is_none(),
        };
        Ok(())
    }

    /// A container without a readiness probe is ready when it runs; with one, when its initial delay is over. Returns
    /// how long that takes from now.
    fn probe(&mut self, index: usize, spec: &Value) -> Option<Duration> {
        let now = self.kubelet.clock.now().as_second();
        let record = self.record.containers.get_mut(index)?;
        let ContainerState::Running { ready, started, .. } = &mut record.state else {
            return None;
        };
        let delay = at(spec, "readinessProbe.initialDelaySeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        let since = started
            .parse::<jiff::Timestamp>()
            .map_or(0, |started| now - started.as_second());
        *ready |= since >= delay;
        u64::try_from(delay - since)
            .ok()
            .filter(|left| *left > 0 && !*ready)
            .map(Duration::from_secs)
    }

    /// Marks a running container as ended.
    fn end_container(&mut self, index: usize, exit_code: i32) {
        let finished = rfc3339(self.kubelet.clock.now_seconds());
        let Some(record) = self.record.containers.get_mut(index) else {
            return;
        };
        if let ContainerState::Running {
            id,
            image,
            image_id,
            started,
            ..
        } = record.state.clone()
        {
            let ended = ContainerState::Terminated {
                id,
                image,
                image_id,
                started,
                finished,
                exit_code,
            };
            record.last = Some(ended.clone());
            record.state = ended;
        }
    }

    /// Stops the containers, says so, and lets the pod go.
    async fn terminate(&mut self) -> Result<(), End> {
        let running: Vec<usize> = (0..self.record.containers.len())
            .filter(|index| {
                self.record
                    .containers
                    .get(*index)
                    .is_some_and(ContainerRecord::is_running)
            })
            .collect();
        for index in &running {
            if let Some(spec) = self.spec_of(*index) {
                self.event(
                    &spec,
                    EventType::Normal,
                    "Killing",
                    format!("Stopping container {}", name_of(&spec)),
                );
            }
        }
        self.write_status().await;
        if !running.is_empty() {
            self.pause(self.kubelet.timing.stop).await?;
        }
        for index in running {
            self.end_container(index, 0);
            // What ended with its pod is no former container of it.
            if let Some(record) = self.record.containers.get_mut(index)
                && record.restarts == 0
            {
                record.last = None;
            }
        }
        self.record.over = true;
        self.write_status().await;
        self.pause(self.kubelet.timing.remove).await?;
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": self.pod.uid()}});
        let request = http::Request::delete(self.path())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "kubelet")
            .body(options.to_string().into_bytes())
            .map_err(kube::Error::HttpError);
        let deleted = match request {
            Ok(request) => self.kubelet.client.request::<Value>(request).await.map(|_| ()),
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            tracing::debug!(%error, pod = %self.pod.name(), "let a pod go");
        }
        // A finalizer may hold the object: then it stays as it is.
        loop {
            self.wait(None).await?;
        }
    }

    fn path(&self) -> String {
        format!(
            "/api/v1/namespaces/{}/pods/{}",
            self.pod.namespace(),
            self.pod.name()
        )
    }

    /// Writes the pod's status where it differs from what the pod shows.
    async fn write_status(&mut self) {
        if self.refresh().is_err() {
            return;
        }
        let now = rfc3339(self.kubelet.clock.now_seconds());
        let status = pod_status::status(&self.record, &self.pod, &now);
        let Some(patch) = pod_status::patch(&self.pod, &status) else {
            return;
        };
        let request = http::Request::patch(format!("{}/status", self.path()))
            .header(CONTENT_TYPE, "application/strategic-merge-patch+json")
            .header(USER_AGENT, "kubelet")
            .body(patch.to_string().into_bytes())
            .map_err(kube::Error::HttpError);
        let patched = match request {
            Ok(request) => self.kubelet.client.request::<Value>(request).await,
            Err(error) => Err(error),
        };
        match patched {
            // Our own write comes back through the watch too; what follows must not wait for it.
            Ok(pod) => self.pod = Arc::new(pod),
            Err(error) => tracing::debug!(%error, pod = %self.pod.name(), "write a pod's status"),
        }
    }

    fn event(&self, spec: &Value, kind: EventType, reason: &str, message: String) {
        let text = |value: &str| Some(value.to_owned());
        let object = ObjectReference {
            api_version: text("v1"),
            kind: text("Pod"),
            name: text(self.pod.name()),
            namespace: text(self.pod.namespace()),
            uid: text(self.pod.uid()),
            resource_version: text(self.pod.resource_version()),
            field_path: Some(format!("spec.containers{{{}}}", name_of(spec))),
        };
        self.kubelet.recorder.event(&object, kind, reason, message);
    }
}

fn specs(pod: &Value) -> &[Value] {
    at(pod, "spec.containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn name_of(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
