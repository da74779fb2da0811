//! The work on one tag.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client_kit::{Credential, EventRecorder, EventType, SharedClock};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::service::{ImageService, PullRequest};
use crate::api::v1beta1::{ImageTagSpec, ImageTagStatus, SandboxConfig};
use crate::images::{BACKOFF_LIMIT, ImageReference, TIMEOUT_S};

/// Annotation of the sandbox: the program that pulls.
const PULLED_BY: (&str, &str) = ("apps.kruise.io/pulling-image-by", "kruise-daemon");
/// How long a worker sleeps after its first failure, in seconds; doubled after each further one …
const SLEEP_MIN_S: u64 = 1;
/// … up to this.
const SLEEP_MAX_S: u64 = 30;

/// A worker that runs until it has done its work or is dropped.
pub(super) struct Worker {
    /// The version of its tag.
    pub(super) version: i64,
    /// The status of its tag, once it has begun.
    status: Arc<Mutex<Option<ImageTagStatus>>>,
    task: AbortHandle,
}

/// The parts that a worker needs.
pub(super) struct Task {
    pub(super) service: Arc<dyn ImageService>,
    pub(super) recorder: EventRecorder,
    pub(super) clock: SharedClock,
    /// The turns of workers, if not all may work at once.
    pub(super) turns: Option<Arc<Semaphore>>,
    /// The image's name.
    pub(super) name: String,
    pub(super) tag: ImageTagSpec,
    pub(super) sandbox: Option<SandboxConfig>,
    pub(super) credentials: Vec<Credential>,
    /// The list, for events.
    pub(super) list: ObjectReference,
}

impl Worker {
    /// Begins to work. Must be called within a tokio runtime.
    pub(super) fn start(task: Task) -> Self {
        let status = Arc::new(Mutex::new(None));
        let version = task.tag.version;
        let work = tokio::spawn(task.run(Arc::clone(&status)));
        Self {
            version,
            status,
            task: work.abort_handle(),
        }
    }

    /// The status of its tag, once it has begun.
    pub(super) fn status(&self) -> Option<ImageTagStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Task {
    async fn run(self, shared: Arc<Mutex<Option<ImageTagStatus>>>) {
        let say = |status: &ImageTagStatus| {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.clone());
        };
        let mut status = ImageTagStatus {
            tag: self.tag.tag.clone(),
            phase: "Waiting".to_owned(),
            version: self.tag.version,
            ..ImageTagStatus::default()
        };
        say(&status);
        let _turn = match &self.turns {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let (start, began) = (self.clock.now(), Instant::now());
        status.start_time = Some(Time(start));
        "Pulling".clone_into(&mut status.phase);
        say(&status);
        let result = self.attempts(start).await;
        status.completion_time = Some(Time(self.clock.now()));
        match &result {
            Ok(id) => {
                "Succeeded".clone_into(&mut status.phase);
                status.progress = 100;
                status.image_id = format!("{}@{id}", self.name);
            }
            Err(error) => {
                "Failed".clone_into(&mut status.phase);
                status.message.clone_from(error);
            }
        }
        say(&status);
        self.tell(&result, began.elapsed());
    }

    fn tell(&self, result: &Result<String, String>, took: Duration) {
        let image = format!("Image {}:{}", self.name, self.tag.tag);
        match result {
            Ok(_) => {
                // The word is OpenKruise's.
                let message = format!("{image}, ecalpsedTime {}", go_seconds(took));
                self.recorder
                    .event(&self.list, EventType::Normal, "PullImageSucceed", message);
            }
            Err(error) => {
                for object in self.tag.owner_references.iter().chain([&self.list]) {
                    let message = format!("{image} {error}");
                    self.recorder
                        .event(object, EventType::Warning, "PullImageFailed", message);
                }
            }
        }
    }

    /// Tries to get the image; gives its id, or the last error.
    async fn attempts(&self, start: Timestamp) -> Result<String, String> {
        let reference = ImageReference::text(&self.name, &self.tag.tag);
        if self.tag.image_pull_policy == "IfNotPresent"
            && let Ok(Some(id)) = self.service.status(&reference).await
        {
            return Ok(id);
        }
        let policy = self.tag.pull_policy.clone().unwrap_or_default();
        let retries = policy
            .backoff_limit
            .filter(|limit| *limit >= 0)
            .unwrap_or(BACKOFF_LIMIT);
        let seconds = u64::try_from(policy.timeout_seconds.unwrap_or(TIMEOUT_S)).unwrap_or_default();
        let mut last = String::new();
        let mut sleep_s = SLEEP_MIN_S;
        for _ in 0..=retries {
            let mut time = Duration::from_secs(seconds);
            if let Some(deadline) = policy.active_deadline_seconds {
                let passed = self.clock.now().duration_since(start);
                let left = SignedDuration::from_secs(deadline).saturating_sub(passed);
                time = time.min(Duration::try_from(left).unwrap_or_default());
                if time.is_zero() {
                    return Err("pulling exceeds the activeDeadlineSeconds".to_owned());
                }
            }
            let tried = timeout(time, self.attempt(&reference)).await;
            match tried {
                Ok(Ok(id)) => return Ok(id),
                Ok(Err(error)) => last = error,
                Err(_) => last = format!("pulling image {}:{} is canceled", self.name, self.tag.tag),
            }
            tokio::time::sleep(Duration::from_secs(sleep_s)).await;
            sleep_s = (sleep_s * 2).min(SLEEP_MAX_S);
        }
        Err(last)
    }

    /// Tries the credentials one after the other, or goes without one where there are none.
    async fn attempt(&self, reference: &str) -> Result<String, String> {
        let mut credentials: Vec<Option<Credential>> = self.credentials.iter().cloned().map(Some).collect();
        if credentials.is_empty() {
            credentials.push(None);
        }
        let mut errors: Vec<String> = Vec::new();
        for credential in credentials {
            match self.service.pull(&self.request(reference, credential)).await {
                Ok(()) => {
                    let id = self.service.status(reference).await?;
                    return id.ok_or_else(|| format!("image {reference} is not there after it was pulled"));
                }
                Err(error) => errors.push(format!("Failed to pull image reference {reference:?}: {error}")),
            }
        }
        errors.dedup();
        match errors.as_slice() {
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    fn request(&self, reference: &str, credential: Option<Credential>) -> PullRequest {
        let sandbox = self.sandbox.clone().unwrap_or_default();
        let mut annotations = sandbox.annotations.unwrap_or_default();
        annotations.insert(PULLED_BY.0.to_owned(), PULLED_BY.1.to_owned());
        PullRequest {
            image: reference.to_owned(),
            credential,
            labels: sandbox.labels.unwrap_or_default(),
            annotations,
        }
    }
}

/// A duration as Go prints it, in whole milliseconds.
fn go_seconds(duration: Duration) -> String {
    let (all_s, ms) = (duration.as_secs(), duration.subsec_millis());
    if all_s == 0 {
        return if ms == 0 {
            "0s".to_owned()
        } else {
            format!("{ms}ms")
        };
    }
    let fraction = format!("{ms:03}");
    let fraction = fraction.trim_end_matches('0');
    let seconds = match fraction {
        "" => format!("{}s", all_s % 60),
        fraction => format!("{}.{fraction}s", all_s % 60),
    };
    match (all_s / 3600, all_s / 60 % 60) {
        (0, 0) => seconds,
        (0, minutes) => format!("{minutes}m{seconds}"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
