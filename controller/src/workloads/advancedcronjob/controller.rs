//! The reconciler: from a key to a pass.

use client_kit::SharedClock;
use kube::{Client, Resource, ResourceExt as _};

use super::act::perform;
use super::jobs::{CachedJob, Child};
use super::observe::Observed;
use super::plan::plan;
use crate::api::v1beta1::{AdvancedCronJob, BroadcastJob, ImageListPullJob};
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, controller_of_kind};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "advancedcronjob-controller";

/// The caches of the reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) crons: Informer<AdvancedCronJob>,
    pub(super) jobs: Informer<CachedJob>,
    pub(super) broadcasts: Informer<BroadcastJob>,
    /// The jobs that pull images, if there are any.
    pub(super) image_lists: Option<Informer<ImageListPullJob>>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.crons, |change, queue| {
            let (Change::Added(cron) | Change::Updated(_, cron) | Change::Deleted(cron)) = change;
            queue.add(ObjectKey::of(cron.as_ref()));
        });
        watches.on(&self.jobs, |change, queue| {
            queue_owner(change, |key| queue.add(key))
        });
        watches.on(&self.broadcasts, |change, queue| {
            queue_owner(change, |key| queue.add(key))
        });
        if let Some(lists) = &self.image_lists {
            watches.on(lists, |change, queue| queue_owner(change, |key| queue.add(key)));
        }
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(cron) = self.crons.get(key) else {
            return Ok(Next::Event);
        };
        let uid = cron.uid().unwrap_or_default();
        let mut children: Vec<Child> = Vec::new();
        children.extend(
            self.jobs
                .owned_by(&uid)
                .iter()
                .map(|job| Child::from(job.as_ref())),
        );
        children.extend(
            self.broadcasts
                .owned_by(&uid)
                .iter()
                .map(|job| Child::from(job.as_ref())),
        );
        if let Some(lists) = &self.image_lists {
            children.extend(lists.owned_by(&uid).iter().map(|job| Child::from(job.as_ref())));
        }
        let observed = Observed {
            now: self.clock.now(),
            cron,
            children,
        };
        let plan = plan(&observed);
        perform(&self.client, &observed.cron, &plan).await?;
        Ok(plan.requeue.into())
    }
}

/// Has the AdvancedCronJob looked at that controls a job.
fn queue_owner<K: Resource<DynamicType = ()>>(change: &Change<'_, K>, add: impl FnOnce(ObjectKey)) {
    let (Change::Added(job) | Change::Updated(_, job) | Change::Deleted(job)) = change;
    let metadata = job.meta();
    if let Some(owner) = controller_of_kind::<AdvancedCronJob>(metadata) {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        add(ObjectKey::new(namespace, &owner.name));
    }
}
