//! Carries out the plan.

use std::collections::BTreeMap;

use super::plan::{Done, Work};
use super::{NAME_LABEL, UID_LABEL};
use crate::api::v1beta1::{BroadcastJob, BroadcastJobStatus};
use crate::kit::{ActError, Kind, ObjectKey, Owner, requests, together};
use crate::pods::actor::{Actor, Creation, KnownClaims, Words};
use crate::pods::build::{Blueprint, Identity, NewPod};
use crate::pods::{PodAction, Revision, ids};

/// The messages of events about jobs.
pub(super) const WORDS: Words = Words {
    created: |_, pod| format!("Created pod: {pod}"),
    not_created: |_, _, _, error| Some(format!("Error creating: {error}")),
    deleted: |_, pod| format!("Delete pod: {pod}"),
    ..Words::NONE
};

/// Works on the pods of one job.
pub(super) struct Performer<'a> {
    pub(super) actor: &'a Actor,
    pub(super) job: &'a BroadcastJob,
    /// The names of the job's pods.
    pub(super) names: &'a [String],
    /// Whether the scheduler binds pods.
    pub(super) by_scheduler: bool,
}

impl Performer<'_> {
    /// Records the events, deletes pods and makes new ones: one less for each that could not be deleted and runs on. Gives the work that
    /// was done, and the first failure.
    pub(super) async fn perform(&self, work: &Work) -> (Done, Result<(), ActError>) {
        let owner = Owner::of(self.job);
        self.events(&owner, &work.events).await;
        let (deleted, kept, deletion) = self.delete(&owner, work).await;
        let nodes = work.create.len().saturating_sub(kept);
        let (tried, creation) = self
            .create(&owner, work.create.get(..nodes).unwrap_or_default())
            .await;
        (Done { deleted, tried }, deletion.and(creation))
    }

    /// Records events.
    pub(super) async fn events(&self, owner: &Owner, events: &[PodAction]) {
        for event in events {
            // An event cannot fail.
            let _ = self.actor.perform(owner, event).await;
        }
    }

    /// Deletes pods, all at once. Gives how many were deleted, how many were not, and why. A pod that is gone by then counts as neither.
    async fn delete(&self, owner: &Owner, work: &Work) -> (usize, usize, Result<(), ActError>) {
        let actions: Vec<PodAction> = work
            .delete
            .iter()
            .map(|pod| PodAction::DeletePod {
                pod: pod.clone(),
                claims: Vec::new(),
            })
            .collect();
        let results = together(&actions, |action| self.actor.perform(owner, action)).await;
        let deleted = results.iter().filter(|result| result.is_ok()).count();
        let failed = results.into_iter().filter_map(Result::err);
        let failed: Vec<ActError> = failed.filter(|error| error.kind != Kind::NotFound).collect();
        let kept = failed.len();
        (deleted, kept, failed.into_iter().next().map_or(Ok(()), Err))
    }

    /// Makes a pod for each of `nodes`. Gives how many were tried.
    async fn create(&self, owner: &Owner, nodes: &[String]) -> (usize, Result<(), ActError>) {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let prefix = format!("{}-", owner.key.name);
        let taken = self.names.iter().filter_map(|name| name.strip_prefix(&prefix));
        let taken: Vec<String> = taken.map(str::to_owned).collect();
        let ids = ids::pick(nodes.len(), &[], &taken, &prefix, self.actor.names.as_ref());
        let template = Revision {
            name: String::new(),
            template: self.job.spec.template.clone(),
            claims: None,
        };
        let labels = [
            (NAME_LABEL, owner.key.name.as_str()),
            (UID_LABEL, owner.uid.as_str()),
        ];
        let pods = ids.into_iter().zip(nodes).map(|(id, node)| NewPod {
            id,
            revision: &template,
            node,
        });
        let creation = Creation {
            blueprint: Blueprint {
                owner,
                claim_templates: &[],
                claim_labels: &NONE,
                identity: Identity::Once {
                    by_scheduler: self.by_scheduler,
                    labels: &labels,
                },
            },
            pods: pods.collect(),
            claims: KnownClaims::NONE,
        };
        let results = self.actor.try_to_create_pods(&creation).await;
        (results.len(), results.into_iter().collect())
    }
}

/// Writes the status.
pub(super) async fn write_status(
    actor: &Actor,
    job: &BroadcastJob,
    status: &BroadcastJobStatus,
) -> Result<(), ActError> {
    let api = actor.api::<BroadcastJob>(&ObjectKey::of(job));
    requests::write_status(&api, job, |latest| latest.status = Some(status.clone())).await?;
    Ok(())
}
