//! The reconciler: from a node's name to its list.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, EventType, Seed, SharedClock};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};

use super::observe::Observed;
use super::plan::{Plan, plan};
use super::repair::Failed;
use super::wake::{job_changed, node_changed};
use crate::api::v1beta1::{ImagePullJob, NodeImage, NodeImageSpec, ReferenceObject};
use crate::images::SHARED_COPY;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Owner, Reconciler, Watches, requests, settled,
};
use crate::pods::CachedNode;

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "nodeimage-controller";
/// A pass that would come too soon waits for so long, in milliseconds …
const REST_MS: u64 = 3000;
/// … and at most for so much longer.
const REST_JITTER_MS: u64 = 2000;

/// The reconciler. Its keys are names of nodes.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) recorder: EventRecorder,
    pub(super) images: Informer<NodeImage>,
    pub(super) nodes: Informer<CachedNode>,
    /// The jobs that write lists, if there are any.
    pub(super) jobs: Option<Informer<ImagePullJob>>,
    /// How long a node is ready before it gets a list.
    pub(super) creation_delay: Duration,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.images, |change, queue| {
            let (Change::Added(image) | Change::Updated(_, image) | Change::Deleted(image)) = change;
            queue.add(ObjectKey::of(image.as_ref()));
        });
        let (images, clock, delay) = (self.images.clone(), Arc::clone(&self.clock), self.creation_delay);
        watches.on(&self.nodes, move |change, queue| {
            node_changed(&images, (delay, clock.now()), change, queue);
        });
        if let Some(jobs) = &self.jobs {
            let images = self.images.clone();
            watches.on(jobs, move |change, queue| job_changed(&images, change, queue));
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let observed = self.observe(key).await?;
        let api: Api<NodeImage> = Api::all(self.client.clone());
        match plan(&observed) {
            Plan::Nothing(next) => return Ok(next.into()),
            Plan::Create => {
                let object = NodeImage::new(&key.name, NodeImageSpec::default());
                settled(api.create(&PostParams::default(), &object).await)?;
            }
            Plan::Delete => {
                let preconditions = Preconditions {
                    uid: observed.image.and_then(|image| image.uid()),
                    resource_version: None,
                };
                let params = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::default()
                };
                settled(api.delete(&key.name, &params).await)?;
            }
            Plan::Write { labels, spec } => {
                if let Some(known) = &observed.image {
                    let mut object = NodeImage {
                        spec,
                        ..NodeImage::clone(known)
                    };
                    object.metadata.labels = Some(labels);
                    settled(api.replace(&key.name, &PostParams::default(), &object).await)?;
                }
            }
            Plan::Fail { status, failed, next } => {
                if let Some(image) = &observed.image {
                    requests::write_status(&api, image.as_ref(), |latest| {
                        latest.status = Some(status.clone());
                    })
                    .await?;
                    failed.iter().for_each(|failed| self.tell(image, failed));
                }
                return Ok(next.into());
            }
        }
        Ok(Next::Event)
    }
}

impl Controller {
    async fn observe(&self, key: &ObjectKey) -> Result<Observed, ActError> {
        let image = self.images.get(key);
        let mut observed = Observed {
            node: self.nodes.get(key),
            image: None,
            jobs: None,
            missing_secrets: Vec::new(),
            rest: rest(&key.name, image.as_deref()),
            now: self.clock.now(),
        };
        if let Some(image) = &image {
            observed.jobs = self.jobs.as_ref().map(|jobs| owners(jobs, image));
            observed.missing_secrets = self.missing_secrets(image).await?;
        }
        observed.image = image;
        Ok(observed)
    }

    /// The Secrets that a list names and that are not there. Copies for jobs are not looked at.
    async fn missing_secrets(&self, image: &NodeImage) -> Result<Vec<ReferenceObject>, ActError> {
        let mut missing = Vec::new();
        let secrets = image.spec.images.values().flat_map(|spec| &spec.pull_secrets);
        for secret in secrets.filter(|secret| secret.mode != SHARED_COPY) {
            let api: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
            if api.get_metadata_opt(&secret.name).await?.is_none() {
                missing.push(secret.clone());
            }
        }
        Ok(missing)
    }

    /// Tells the owners of a tag and the list that it has failed.
    fn tell(&self, image: &NodeImage, failed: &Failed) {
        let node = image.name_any();
        let message = format!(
            "Failed to pull image {} on node {node} for {}",
            failed.image, failed.message
        );
        let subject = Owner::of(image).subject();
        for object in failed.owners.iter().chain([&subject]) {
            self.recorder
                .event(object, EventType::Warning, "PullImageFailed", message.clone());
        }
    }
}

/// The uids of the jobs that own tags of a list and that are there.
fn owners(jobs: &Informer<ImagePullJob>, image: &NodeImage) -> BTreeSet<String> {
    let tags = image.spec.images.values().flat_map(|spec| &spec.tags);
    let owners = tags.flat_map(|tag| &tag.owner_references);
    let uids = owners.filter_map(|owner| {
        let (namespace, name) = (owner.namespace.as_deref()?, owner.name.as_deref()?);
        let job = jobs.get(&ObjectKey::new(namespace, name))?;
        job.uid().filter(|uid| owner.uid.as_ref() == Some(uid))
    });
    uids.collect()
}

/// How long a pass waits that would come too soon: not all lists at once.
fn rest(node: &str, image: Option<&NodeImage>) -> Duration {
    let version = image
        .and_then(|image| image.resource_version())
        .unwrap_or_default();
    let mut random = Seed(0).fork(node).fork(&version).random();
    Duration::from_millis(REST_MS + random.below(REST_JITTER_MS))
}
