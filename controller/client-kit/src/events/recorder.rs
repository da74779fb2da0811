//! Takes events and writes them in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::local::ObjectClient;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, ObjectReference};
use kube::Resource;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use tokio::sync::mpsc;

use super::correlator::{Correlated, Decision, EventCorrelator};
use super::event::{Event, EventSource, EventType};
use crate::clock::SharedClock;

/// How many events may wait to be written; more are dropped (client-go: 1000).
const QUEUE_EVENTS_MAX: usize = 1000;
/// How often a write is tried (client-go: 12).
const WRITE_TRIES_MAX: u32 = 12;
/// How long a failed write waits before the next try (client-go: 10 s).
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Writes events about objects, as client-go's `record.EventRecorder` does.
///
/// Cheap to clone; all clones share one queue and one writing task, which ends when the last clone is dropped and the
/// queue is empty.
///
/// ```no_run
/// # use client_kit::{EventRecorder, EventType, SystemClock};
/// # use std::sync::Arc;
/// # async fn example(client: kube::Client, object: k8s_openapi::api::core::v1::ObjectReference) {
/// let recorder = EventRecorder::new(client, "cloneset-controller", None, Arc::new(SystemClock));
/// recorder.event(&object, EventType::Normal, "SuccessfulCreate", "succeed to create pod cs-demo-4wz2z".to_owned());
/// # }
/// ```
#[derive(Clone)]
pub struct EventRecorder {
    source: EventSource,
    clock: SharedClock,
    queue: mpsc::Sender<Event>,
    stamps: Arc<Mutex<Stamps>>,
}

/// The nanoseconds that names are made of. They must differ between events, also while virtual time stands still, and
/// should differ between components that write about one object in the same instant.
#[derive(Debug)]
struct Stamps {
    last: i128,
    offset: i128,
}

impl Stamps {
    fn next(&mut self, now: Timestamp) -> i128 {
        // Real clocks have their own nanoseconds; tokio's virtual one moves in whole milliseconds, and there the
        // component's offset (below one millisecond) keeps two recorders apart.
        let mut stamp = now.as_nanosecond();
        if stamp % 1_000_000 == 0 {
            stamp += self.offset;
        }
        self.last = stamp.max(self.last.saturating_add(1));
        self.last
    }
}

impl EventRecorder {
    /// A recorder for `component` (on node `host`, if that is part of its identity), whose timestamps come from `clock`.
    ///
    /// Spawns the writing task, so it must be called within a tokio runtime.
    #[must_use]
    pub fn new(
        client: impl Into<ObjectClient>,
        component: &str,
        host: Option<&str>,
        clock: SharedClock,
    ) -> Self {
        let (queue, events) = mpsc::channel(QUEUE_EVENTS_MAX);
        let source = EventSource {
            component: component.to_owned(),
            host: host.map(str::to_owned),
            reporting: false,
        };
        let seed = crate::Seed(0).fork(component).fork(host.unwrap_or_default());
        let offset = i128::from(seed.random().below(1_000_000));
        let stamps = Arc::new(Mutex::new(Stamps { last: 0, offset }));
        let writer = Writer {
            client: client.into(),
            clock: Arc::clone(&clock),
            correlator: EventCorrelator::new(),
            stamps: Arc::clone(&stamps),
        };
        tokio::spawn(writer.run(events));
        Self {
            source,
            clock,
            queue,
            stamps,
        }
    }

    /// The same recorder, which also fills `reportingComponent` and `reportingInstance`, as client-go 0.27 and later do
    /// (the kubelet and kube-controller-manager of today, and OpenKruise 1.9). Without it both are empty.
    #[must_use]
    pub fn with_reporting(mut self, reporting: bool) -> Self {
        self.source.reporting = reporting;
        self
    }

    /// The same recorder under another component's name.
    #[must_use]
    pub fn named(&self, component: &str) -> Self {
        let mut other = self.clone();
        other.source.component = component.to_owned();
        other
    }

    /// Records that `reason` happened to `object`. Returns at once; the event is written later, after all earlier ones.
    /// When too many wait it is dropped, with a warning in the log.
    pub fn event(&self, object: &ObjectReference, kind: EventType, reason: &str, message: String) {
        self.annotated_event(object, BTreeMap::new(), kind, reason, message);
    }

    /// The same with annotations on the event.
    pub fn annotated_event(
        &self,
        object: &ObjectReference,
        annotations: BTreeMap<String, String>,
        kind: EventType,
        reason: &str,
        message: String,
    ) {
        let now = self.clock.now();
        let stamp = self
            .stamps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(now);
        let event = Event {
            name: name(object, stamp),
            object: object.clone(),
            source: self.source.clone(),
            kind,
            reason: reason.to_owned(),
            message,
            first: now,
            last: now,
            count: 1,
            annotations,
        };
        if let Err(error) = self.queue.try_send(event) {
            tracing::warn!(component = self.source.component, reason, %error, "dropped an event");
        }
    }
}

fn name(object: &ObjectReference, stamp: i128) -> String {
    format!("{}.{stamp:x}", object.name.as_deref().unwrap_or_default())
}

/// The task behind a recorder.
struct Writer {
    client: ObjectClient,
    clock: SharedClock,
    correlator: EventCorrelator,
    stamps: Arc<Mutex<Stamps>>,
}

impl Writer {
    async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        while let Some(event) = events.recv().await {
            match self.correlator.correlate(event, self.clock.now()) {
                Decision::Drop => {}
                Decision::Create(correlated) => self.write(correlated, false).await,
                Decision::Patch(correlated) => self.write(correlated, true).await,
            }
        }
    }

    /// Writes one event, with retries while the failure may pass.
    async fn write(&mut self, mut correlated: Correlated, mut exists: bool) {
        let mut uncertain = false;
        for attempt in 1..=WRITE_TRIES_MAX {
            let event = &correlated.event;
            let result = if exists {
                self.patch(event).await
            } else {
                self.create(event).await
            };
            let Err(error) = result else {
                self.correlator.written(&correlated);
                return;
            };
            match failure(&error) {
                Failure::Gone if exists => exists = false,
                // An earlier try may have got through although its answer did not.
                Failure::Taken if uncertain => return,
                Failure::Taken => {
                    let stamp = self
                        .stamps
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .next(self.clock.now());
                    correlated.event.name = name(&correlated.event.object, stamp);
                }
                Failure::Passing if attempt < WRITE_TRIES_MAX => {
                    uncertain = true;
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Failure::Gone | Failure::Passing | Failure::Final => {
                    tracing::warn!(event = event.name, reason = event.reason, %error, "dropped an event");
                    return;
                }
            }
        }
    }

    async fn create(&self, event: &Event) -> Result<(), kube::Error> {
        let request = requests(event)
            .create(&PostParams::default(), Vec::new())
            .map_err(kube::Error::BuildRequest)?;
        let request = request.map(|_| event.to_json());
        self.client.send(request).await
    }

    async fn patch(&self, event: &Event) -> Result<(), kube::Error> {
        let request = requests(event)
            .patch(&event.name, &PatchParams::default(), &Patch::Strategic(()))
            .map_err(kube::Error::BuildRequest)?;
        let request = request.map(|_| event.to_patch());
        self.client.send(request).await
    }
}

fn requests(event: &Event) -> Request {
    Request::new(CoreEvent::url_path(&(), Some(event.namespace())))
}

enum Failure {
    /// There is no such object.
    Gone,
    /// The name is taken.
    Taken,
    /// The server was not reached or was busy.
    Passing,
    /// It will be refused again.
    Final,
}

fn failure(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => match (status.code, status.reason.as_str()) {
            (404, _) => Failure::Gone,
            (409, "AlreadyExists") => Failure::Taken,
            (429 | 500 | 502 | 503 | 504, _) => Failure::Passing,
            _ => Failure::Final,
        },
        kube::Error::SerdeError(_) | kube::Error::BuildRequest(_) => Failure::Final,
        _ => Failure::Passing,
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
