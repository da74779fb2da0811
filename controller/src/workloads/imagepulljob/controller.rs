//! The reconciler: from a key to a pass.

use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, ResourceExt as _};

use super::held_secret::HeldSecret;
use super::plan::{Observed, Phase, phase, work};
use super::select::Wanted;
use super::wake::{image_changed, pod_changed, secret_changed};
use crate::api::v1beta1::{ImagePullJob, NodeImage};
use crate::images::ImageReference;
use crate::kit::expectations::Expectations;
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches};
use crate::pods::CachedPod;
use crate::pods::pod::{self, Pod};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "imagepulljob-controller";
/// How long a pass waits for lists that were written and are not in the cache yet.
const STALE: Duration = Duration::from_secs(5);

/// The caches of the reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    /// The writes that are not in the caches yet.
    pub(super) expectations: Arc<Expectations>,
    pub(super) jobs: Informer<ImagePullJob>,
    pub(super) images: Informer<NodeImage>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) secrets: Informer<HeldSecret<Secret>>,
    /// The namespace of the copies of Secrets, which the daemon may read.
    pub(super) secrets_namespace: String,
    /// For how many seconds lists keep a tag beyond the time in the job.
    pub(super) kept_s: i64,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.jobs, move |change, queue| {
            if let Change::Deleted(job) = change {
                expectations.forget_object(job.as_ref());
            }
            let (Change::Added(job) | Change::Updated(_, job) | Change::Deleted(job)) = change;
            queue.add(ObjectKey::of(job.as_ref()));
        });
        let (jobs, pods) = (self.jobs.clone(), self.pods.clone());
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.images, move |change, queue| {
            if let Change::Deleted(image) = change {
                expectations.forget_object(image.as_ref());
            }
            image_changed(&jobs, &pods, change, queue);
        });
        let jobs = self.jobs.clone();
        watches.on(&self.pods, move |change, queue| pod_changed(&jobs, change, queue));
        let (jobs, copies_in) = (self.jobs.clone(), self.secrets_namespace.clone());
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.secrets, move |change, queue| {
            if let Change::Deleted(secret) = change {
                expectations.forget_object(secret.as_ref());
            }
            secret_changed(&jobs, &copies_in, change, queue);
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(job) = self.jobs.get(key) else {
            return Ok(Next::Event);
        };
        if self.expectations.unseen_object(job.as_ref()).is_some() {
            return Ok(Next::After(STALE));
        }
        match phase(&job, self.clock.now()) {
            Phase::Running => self.run(&job).await,
            Phase::Going | Phase::Over => {
                self.let_go(&job).await?;
                Ok(Next::Event)
            }
            Phase::OverFor(left) => {
                self.let_go(&job).await?;
                if !left.is_zero() {
                    return Ok(Next::After(left));
                }
                self.delete(&job).await?;
                Ok(Next::Event)
            }
        }
    }
}

impl Controller {
    /// A pass over a job that runs.
    async fn run(&self, job: &ImagePullJob) -> Result<Next, ActError> {
        let image = match ImageReference::parse(&job.spec.image) {
            Ok(image) => image,
            // The webhook lets no such job through.
            Err(error) => {
                tracing::warn!(image = job.spec.image, error, "failed to read an image");
                return Ok(Next::Event);
            }
        };
        let job = Arc::new(self.hold(job).await?);
        let nodes = self.nodes(&job);
        let unseen = |node: &Arc<NodeImage>| self.expectations.unseen_object(node.as_ref()).is_some();
        if nodes.iter().any(unseen) {
            return Ok(Next::After(STALE));
        }
        let Some(secrets) = self.copy_secrets(&job).await? else {
            return Ok(Next::After(STALE));
        };
        let observed = Observed {
            image,
            nodes,
            secrets,
            now: self.clock.now(),
            job: Arc::clone(&job),
        };
        let work = work(&observed);
        self.ask(&observed, &work.ask).await?;
        if job.status.as_ref() != Some(&work.status) {
            self.write_status(&job, &work.status).await?;
            return Ok(Next::Event);
        }
        Ok(work.next.into())
    }

    /// The lists of the nodes that a job wants, by name.
    fn nodes(&self, job: &ImagePullJob) -> Vec<Arc<NodeImage>> {
        let wanted = Wanted::of(job);
        if !wanted.is_of_pods() {
            let mut nodes = self.images.all();
            nodes.retain(|node| wanted.wants(node) == Some(true));
            nodes.sort_by_key(|node| node.name_any());
            return nodes;
        }
        let pods = self.pods.in_namespace(&job.namespace().unwrap_or_default());
        let wants = |pod: &Pod| pod::is_active(pod) && wanted.wants_node_of(pod);
        let mut names: Vec<&str> = pods
            .iter()
            .filter(|pod| wants(pod))
            .map(|pod| pod::node(pod))
            .collect();
        names.sort_unstable();
        names.dedup();
        let lists = names
            .into_iter()
            .map(|name| self.images.get(&ObjectKey::new("", name)));
        lists.flatten().collect()
    }
}
