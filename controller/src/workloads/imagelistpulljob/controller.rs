//! The reconciler: from a key to a pass.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, SharedClock};
use kube::{Client, ResourceExt as _};

use super::plan::{Observed, Plan, plan};
use crate::api::v1beta1::{ImageListPullJob, ImagePullJob};
use crate::kit::expectations::{EXPECTATION_TIMEOUT, Expectations, Expected, Member, Visible};
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, WorkQueue, controller_of_kind,
};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "imagelistpulljob-controller";

/// The caches of the reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) recorder: EventRecorder,
    /// The jobs that were made or deleted and that the cache does not show so.
    pub(super) expectations: Arc<Expectations>,
    pub(super) lists: Informer<ImageListPullJob>,
    pub(super) jobs: Informer<ImagePullJob>,
}

/// A job, for expectations.
pub(super) fn member(name: &str) -> Member {
    Member::Workload("ImagePullJob", name.to_owned())
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.lists, move |change, queue| {
            if let Change::Deleted(list) = change {
                expectations.forget_set(&ObjectKey::of(list.as_ref()));
            }
            let (Change::Added(list) | Change::Updated(_, list) | Change::Deleted(list)) = change;
            queue.add(ObjectKey::of(list.as_ref()));
        });
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.jobs, move |change, queue| {
            job_changed(&expectations, change, queue)
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(list) = self.lists.get(key) else {
            self.expectations.forget_set(key);
            return Ok(Next::Event);
        };
        if let Some(wait) = self.waits(key) {
            return Ok(Next::After(wait));
        }
        let mut jobs = self.jobs.owned_by(&list.uid().unwrap_or_default());
        jobs.retain(|job| job.metadata.deletion_timestamp.is_none());
        let observed = Observed {
            jobs,
            now: self.clock.now(),
            list: Arc::clone(&list),
        };
        match plan(&observed) {
            Plan::Rest(next) => return Ok(next.into()),
            Plan::Remove => self.remove(&list).await?,
            Plan::Label(hash) => self.label(&list, &hash).await?,
            Plan::Work(work) => self.work(&list, &work).await?,
        }
        Ok(Next::Event)
    }
}

impl Controller {
    /// How long a pass waits for its writes that the cache does not show. After a time it does not.
    fn waits(&self, key: &ObjectKey) -> Option<Duration> {
        match self.expectations.of_set(key) {
            Visible::NotFor(age) if age < EXPECTATION_TIMEOUT => Some(EXPECTATION_TIMEOUT - age),
            Visible::NotFor(_) | Visible::Doubtful => {
                self.expectations.forget_set(key);
                None
            }
            Visible::Yes => None,
        }
    }
}

/// A job came, changed or is gone: its list is looked at.
fn job_changed(expectations: &Expectations, change: &Change<'_, ImagePullJob>, queue: &WorkQueue<ObjectKey>) {
    let (Change::Added(job) | Change::Updated(_, job) | Change::Deleted(job)) = change;
    let Some(owner) = controller_of_kind::<ImageListPullJob>(&job.metadata) else {
        return;
    };
    let key = ObjectKey::new(&job.namespace().unwrap_or_default(), &owner.name);
    let member = member(&job.name_any());
    if !matches!(change, Change::Deleted(_)) {
        expectations.settle(&key, Expected::Creation, member.clone());
    }
    if matches!(change, Change::Deleted(_)) || job.metadata.deletion_timestamp.is_some() {
        expectations.settle(&key, Expected::Deletion, member);
    }
    queue.add(key);
}
