//! Compares the list of the node with the pulls under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client_kit::{Credential, EventRecorder, Random, Seed, SharedClock, credentials};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::pace::Pace;
use super::report::{Key, is_over, report};
use super::service::ImageService;
use super::worker::{Task, Worker};
use crate::api::v1beta1::{ImageTagSpec, NodeImage, ReferenceObject};
use crate::images::ImageReference;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, RetryDelays, Runtime, Watches, WorkQueue,
    requests,
};

/// The component that pulls, in events.
const COMPONENT: &str = "kruise-daemon-imagepuller";
/// The delays after failures.
const RETRY: RetryDelays = RetryDelays {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(50),
};
/// When the puller looks again while something is under way, at least and at most, in milliseconds.
const SOON_MS: (u64, u64) = (3000, 5000);
/// When it looks again otherwise.
const LATER_MS: (u64, u64) = (20 * 60_000, 30 * 60_000);
/// For how long a Secret is not read again.
const SECRET_AGE: Duration = Duration::from_secs(5 * 60);

/// Adds the puller of a node to a daemon, and gives its cache. At most `workers` tags are pulled at a time, if that is given.
pub(in crate::daemon) fn add(
    runtime: &mut Runtime,
    (client, node, clock): (&Client, &str, &SharedClock),
    service: Arc<dyn ImageService>,
    workers: Option<usize>,
) -> Informer<NodeImage> {
    let images = runtime.selected_cache(&format!("metadata.name={node}"));
    let puller = Puller {
        client: client.clone(),
        recorder: EventRecorder::new(client.clone(), COMPONENT, Some(node), Arc::clone(clock))
            .with_reporting(true),
        clock: Arc::clone(clock),
        images: images.clone(),
        service,
        turns: workers.map(|workers| Arc::new(Semaphore::new(workers.max(1)))),
        state: Mutex::new(State {
            workers: BTreeMap::new(),
            secrets: BTreeMap::new(),
            pace: Pace::new(),
            random: Seed(0).fork(COMPONENT).fork(node).random(),
        }),
    };
    let queue = WorkQueue::new().with_retry(RETRY);
    runtime.add(&Arc::new(puller), &Arc::new(queue), 1);
    images
}

/// The puller of a node.
struct Puller {
    client: Client,
    recorder: EventRecorder,
    clock: SharedClock,
    images: Informer<NodeImage>,
    service: Arc<dyn ImageService>,
    turns: Option<Arc<Semaphore>>,
    state: Mutex<State>,
}

/// When a Secret was read, and the Secret if it was there.
type ReadSecret = (Instant, Option<Arc<Secret>>);

struct State {
    workers: BTreeMap<Key, Worker>,
    /// The Secrets that were read, by namespace and name.
    secrets: BTreeMap<(String, String), ReadSecret>,
    pace: Pace,
    random: Random,
}

impl Reconciler for Puller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "imagepuller"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.images, |change, queue| match change {
            Change::Updated(old, new) if old.spec == new.spec => {}
            Change::Added(image) | Change::Updated(_, image) | Change::Deleted(image) => {
                queue.add(ObjectKey::of(image.as_ref()));
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let image = self.images.get(key);
        let Some(image) = image.filter(|image| image.metadata.deletion_timestamp.is_none()) else {
            self.state().workers.clear();
            return Ok(Next::Event);
        };
        self.end_workers(&image);
        self.start_workers(&image).await?;
        let status = {
            let state = self.state();
            let running = state
                .workers
                .iter()
                .filter_map(|(key, worker)| Some((key.clone(), worker.status()?)));
            report(&image, &running.collect())
        };
        let is_done = status.desired == status.succeeded + status.failed;
        let is_new = image.status.as_ref() != Some(&status);
        let may_write = !is_new || self.state().pace.allows();
        if is_new && may_write {
            let api: Api<NodeImage> = Api::all(self.client.clone());
            requests::write_status(&api, image.as_ref(), |latest| {
                latest.status = Some(status.clone())
            })
            .await?;
        }
        let (least, most) = if is_done && may_write { LATER_MS } else { SOON_MS };
        let wait_ms = self.state().random.between(least, most);
        Ok(Next::After(Duration::from_millis(wait_ms)))
    }
}

impl Puller {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the workers of tags that are over, of another version or not wanted any more.
    fn end_workers(&self, image: &NodeImage) {
        self.state().workers.retain(|(name, tag), worker| {
            let wanted = image.tag(name, tag);
            wanted.is_some_and(|tag| tag.version == worker.version && !is_over(image, name, tag))
        });
    }

    /// Begins to work on tags that have no worker.
    async fn start_workers(&self, image: &NodeImage) -> Result<(), ActError> {
        for (name, spec) in &image.spec.images {
            for tag in &spec.tags {
                let key = (name.clone(), tag.tag.clone());
                if is_over(image, name, tag) || self.state().workers.contains_key(&key) {
                    continue;
                }
                let credentials = self.credentials(&spec.pull_secrets, name, tag).await?;
                let worker = Worker::start(Task {
                    service: Arc::clone(&self.service),
                    recorder: self.recorder.clone(),
                    clock: Arc::clone(&self.clock),
                    turns: self.turns.clone(),
                    name: name.clone(),
                    tag: tag.clone(),
                    sandbox: spec.sandbox_config.clone(),
                    credentials,
                    list: Owner::of(image).subject(),
                });
                self.state().workers.insert(key, worker);
            }
        }
        Ok(())
    }

    /// The credentials of Secrets for an image. A Secret that is missing is left out.
    async fn credentials(
        &self,
        secrets: &[ReferenceObject],
        name: &str,
        tag: &ImageTagSpec,
    ) -> Result<Vec<Credential>, ActError> {
        let image = ImageReference::text(name, &tag.tag);
        let mut found = Vec::new();
        for reference in secrets {
            if let Some(secret) = self.secret(reference).await? {
                found.extend(credentials(&secret, &image));
            }
        }
        Ok(found)
    }

    async fn secret(&self, reference: &ReferenceObject) -> Result<Option<Arc<Secret>>, ActError> {
        let key = (reference.namespace.clone(), reference.name.clone());
        let known = self.state().secrets.get(&key).cloned();
        if let Some((_, secret)) = known.filter(|(read, _)| read.elapsed() < SECRET_AGE) {
            return Ok(secret);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &reference.namespace);
        let secret = api.get_opt(&reference.name).await?.map(Arc::new);
        self.state().secrets.insert(key, (Instant::now(), secret.clone()));
        Ok(secret)
    }
}
