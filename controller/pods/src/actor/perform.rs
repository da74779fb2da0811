//! One action.

use kruise_kit::{ActError, Kind, Owner};

use super::objects::Actor;
use super::patch::InPlacePatches;
use crate::PodAction;

impl Actor {
    /// Performs `action`.
    ///
    /// # Errors
    /// Those of the requests, and the failure that the action says.
    pub async fn perform(&self, owner: &Owner, action: &PodAction) -> Result<(), ActError> {
        match action {
            PodAction::Event {
                kind,
                reason,
                message,
            } => {
                self.event(owner, *kind, reason, message.clone());
                Ok(())
            }
            PodAction::DeletePod { pod, claims } => self.delete_pod(owner, pod, claims).await,
            PodAction::AskLeave { pod } => self.ask_leave(owner, pod).await,
            PodAction::PatchPodStatus { pod, patch } => self.patch_pod_status(owner, pod, patch).await,
            PodAction::PatchPod { pod, patch } => self.patch_pod(owner, pod, patch).await,
            PodAction::ResizePod { pod, patch } => self.resize_pod(owner, pod, patch).await,
            PodAction::PatchEphemeral { pod, patch } => self.patch_ephemeral(owner, pod, patch).await,
            PodAction::UpdateInPlace {
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
                if let Some(error) = self.refusals.holding(pod, revision, self.clock.now()) {
                    return Err(error);
                }
                let result = self.update_in_place(owner, pod, &patches, revision).await;
                match result {
                    // What the node has no room for now, it may have room for later.
                    Err(error) if *or_recreate && resize.is_none() && error.kind == Kind::Refused => {
                        self.recreate(owner, pod, false, revision).await
                    }
                    Err(error) if error.kind == Kind::Refused => {
                        self.refusals.note(pod, revision, &error, self.clock.now());
                        Err(error)
                    }
                    result => result,
                }
            }
            PodAction::Recreate {
                pod,
                marked,
                revision,
            } => self.recreate(owner, pod, *marked, revision).await,
            PodAction::GiveClaim { claim, pod } => self.give_claim(owner, claim, pod).await,
            PodAction::PatchClaim { claim, patch } => self.patch_claim(owner, claim, patch).await,
            PodAction::DeleteClaim { claim } => self.delete_claim(owner, claim).await,
            PodAction::MarkRevision { name, label } => {
                self.mark_revision(owner, name, label).await;
                Ok(())
            }
            PodAction::CreatePullJob { object, image } => {
                self.create_pull_job(owner, object, image).await;
                Ok(())
            }
            PodAction::DeletePullJob { name } => {
                self.delete_pull_job(owner, name).await;
                Ok(())
            }
            PodAction::AdoptRevision { name } => self.adopt_revision(owner, name).await,
            PodAction::DeleteRevision { name } => self.delete_revision(owner, name).await,
            PodAction::Fail(message) => Err(ActError::planned(message)),
        }
    }
}
