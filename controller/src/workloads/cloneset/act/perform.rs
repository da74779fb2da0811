//! One action.

use super::create::Creation;
use super::objects::Actor;
use super::patch::InPlacePatches;
use crate::api::v1alpha1::CloneSet;
use crate::kit::{ActError, Kind};
use crate::workloads::cloneset::observe::Revisions;
use crate::workloads::cloneset::plan::Action;

impl Actor {
    /// Does what `action` says.
    pub(crate) async fn perform(
        &self,
        set: &CloneSet,
        revisions: &Revisions,
        action: &Action,
    ) -> Result<(), ActError> {
        match action {
            Action::Event {
                kind,
                reason,
                message,
            } => {
                self.event(set, *kind, reason, message.clone());
                Ok(())
            }
            Action::CreatePods {
                count,
                of_current,
                reuse_ids,
                taken_ids,
                existing_claims,
                short_hash,
            } => {
                let (count, of_current) = (*count, *of_current);
                let creation = Creation {
                    count,
                    of_current,
                    reuse_ids,
                    taken_ids,
                    existing_claims,
                    short_hash: *short_hash,
                };
                self.create_pods(set, revisions, &creation).await
            }
            Action::DeletePod { pod, claims } => self.delete_pod(set, pod, claims).await,
            Action::PatchPodStatus { pod, patch } => self.patch_pod_status(set, pod, patch).await,
            Action::PatchPod { pod, patch } => self.patch_pod(set, pod, patch).await,
            Action::ResizePod { pod, patch } => self.resize_pod(set, pod, patch).await,
            Action::UpdateInPlace {
                pod,
                status_patch,
                resize,
                patch,
                revision,
                or_recreate,
            } => {
                let patches = InPlacePatches {
                    status: status_patch.as_ref(),
                    resize: resize.as_ref(),
                    pod: patch,
                };
                let result = self.update_in_place(set, pod, &patches, revision).await;
                match result {
                    Err(error) if *or_recreate && error.kind == Kind::Refused => {
                        self.recreate(set, pod, false, revision).await
                    }
                    result => result,
                }
            }
            Action::Recreate {
                pod,
                marked,
                revision,
            } => self.recreate(set, pod, *marked, revision).await,
            Action::GiveClaim { claim, pod } => self.give_claim(set, claim, pod).await,
            Action::DeleteClaim { claim } => self.delete_claim(set, claim).await,
            Action::TrimPodsToDelete { keep } => self.trim_pods_to_delete(set, keep).await,
            Action::MarkRevision { name, label } => {
                self.mark_revision(set, name, label).await;
                Ok(())
            }
            Action::CreatePullJob { object, image } => {
                self.create_pull_job(set, object, image).await;
                Ok(())
            }
            Action::DeletePullJob { name } => {
                self.delete_pull_job(set, name).await;
                Ok(())
            }
            Action::DeleteRevision { name } => self.delete_revision(set, name).await,
            Action::Fail(message) => Err(ActError::planned(message)),
        }
    }
}
