//! Changing and deleting pods and claims.

use client_kit::EventType;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kruise_api::labels;
use kruise_kit::expectations::{Expected, Member};
use kruise_kit::json::merge;
use kruise_kit::{ActError, Kind, ObjectKey, Owner};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};

use super::objects::{Actor, patch_params};
use crate::pod::Pod;
use crate::{PatchText, PodRef};

/// The patches of an update in place, in the order in which they are sent.
pub(super) struct InPlacePatches<'p> {
    /// Takes the pod out of service.
    pub(super) status: Option<&'p PatchText>,
    /// Changes the resources of its containers.
    pub(super) resize: Option<&'p PatchText>,
    /// All the rest.
    pub(super) pod: &'p PatchText,
}

impl Actor {
    /// Patches a pod's status.
    pub(super) async fn patch_pod_status(
        &self,
        owner: &Owner,
        pod: &PodRef,
        patch: &PatchText,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&owner.key);
        let written = api
            .patch_status(&pod.name, &patch_params(), &Patch::Strategic(&patch))
            .await?;
        self.expect_version(&written);
        Ok(())
    }

    /// Patches a pod.
    pub(super) async fn patch_pod(
        &self,
        owner: &Owner,
        pod: &PodRef,
        patch: &PatchText,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&owner.key);
        let written = api
            .patch(&pod.name, &patch_params(), &Patch::Strategic(&patch))
            .await?;
        self.expect_version(&written);
        Ok(())
    }

    /// Patches the resources of a pod's containers.
    pub(super) async fn resize_pod(
        &self,
        owner: &Owner,
        pod: &PodRef,
        patch: &PatchText,
    ) -> Result<(), ActError> {
        self.patch_part("resize", owner, pod, patch).await
    }

    /// Patches a pod's ephemeral containers.
    pub(super) async fn patch_ephemeral(
        &self,
        owner: &Owner,
        pod: &PodRef,
        patch: &PatchText,
    ) -> Result<(), ActError> {
        self.patch_part("ephemeralcontainers", owner, pod, patch).await
    }

    /// Patches a subresource of a pod.
    async fn patch_part(
        &self,
        subresource: &str,
        owner: &Owner,
        pod: &PodRef,
        patch: &PatchText,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&owner.key);
        let written: Pod = api
            .patch_subresource(subresource, &pod.name, &patch_params(), &Patch::Strategic(&patch))
            .await?;
        self.expect_version(&written);
        Ok(())
    }

    fn expect_version(&self, pod: &Pod) {
        let version = pod.resource_version().unwrap_or_default();
        self.expectations
            .expect_version(&pod.uid().unwrap_or_default(), &version);
    }

    /// Begins to update a pod in place.
    pub(super) async fn update_in_place(
        &self,
        owner: &Owner,
        pod: &PodRef,
        patches: &InPlacePatches<'_>,
        revision: &str,
    ) -> Result<(), ActError> {
        let name = &pod.name;
        let result = async {
            if let Some(status) = patches.status {
                self.patch_pod_status(owner, pod, status).await?;
            }
            if let Some(resize) = patches.resize {
                self.resize_pod(owner, pod, resize).await?;
            }
            self.patch_pod(owner, pod, patches.pod).await
        };
        let result = result.await;
        match &result {
            Ok(()) => {
                let message = (self.words.updated_in_place)(name, revision);
                self.event(owner, EventType::Normal, "SuccessfulUpdatePodInPlace", message);
            }
            Err(error) => {
                let message = format!("failed to update pod {name} in-place(revision {revision}): {error}");
                self.event(owner, EventType::Warning, "FailedUpdatePodInPlace", message);
            }
        }
        result
    }

    /// Marks a pod to be deleted for its successor.
    pub(super) async fn recreate(
        &self,
        owner: &Owner,
        pod: &PodRef,
        marked: bool,
        revision: &str,
    ) -> Result<(), ActError> {
        let name = &pod.name;
        if !marked {
            let patch = json!({ "metadata": { "labels": { labels::SPECIFIED_DELETE: "true" } } });
            if let Err(error) = self.patch_pod(owner, pod, &patch.into()).await {
                let message = format!(
                    "failed to patch pod specified-delete {name} for update(revision {revision}): {error}"
                );
                self.event(owner, EventType::Warning, "FailedUpdatePodReCreate", message);
                return Err(error);
            }
        }
        let message =
            format!("successfully patch pod {name} specified-delete for update(revision {revision})");
        self.event(owner, EventType::Normal, "SuccessfulUpdatePodReCreate", message);
        Ok(())
    }

    /// Deletes a pod, and then its claims.
    pub(super) async fn delete_pod(
        &self,
        owner: &Owner,
        pod: &PodRef,
        claims: &[String],
    ) -> Result<(), ActError> {
        let key = &owner.key;
        let member = Member::Pod(pod.name.clone());
        self.expectations.expect(key, Expected::Deletion, member.clone());
        let preconditions = Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        if let Err(error) = self.api::<Pod>(key).delete(&pod.name, &params).await {
            let error = ActError::from(error);
            self.unmet(key, Expected::Deletion, member, &error);
            if error.kind != Kind::NotFound {
                for message in (self.words.not_deleted)(owner, &pod.name, &error) {
                    self.event(owner, EventType::Warning, "FailedDelete", message);
                }
            }
            return Err(error);
        }
        let message = (self.words.deleted)(owner, &pod.name);
        self.event(owner, EventType::Normal, "SuccessfulDelete", message);
        for claim in claims {
            let member = Member::Claim(claim.clone());
            self.expectations.expect(key, Expected::Deletion, member.clone());
            if let Err(error) = self.remove_claim(key, claim).await {
                self.unmet(key, Expected::Deletion, member, &error);
                if error.kind == Kind::NotFound {
                    continue;
                }
                let message = format!("failed to delete pvc {claim}: {error}");
                self.event(owner, EventType::Warning, "FailedDelete", message);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn remove_claim(&self, key: &ObjectKey, claim: &str) -> Result<(), ActError> {
        self.api::<PersistentVolumeClaim>(key)
            .delete(claim, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Deletes a claim that no pod uses.
    pub(super) async fn delete_claim(&self, owner: &Owner, claim: &str) -> Result<(), ActError> {
        let result = self.remove_claim(&owner.key, claim).await;
        match result {
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            Err(error) => {
                let message = format!("failed to clean up PVC {claim}: {error}");
                self.event(owner, EventType::Warning, "FailedDelete", message);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Patches a claim.
    pub(super) async fn patch_claim(
        &self,
        owner: &Owner,
        claim: &str,
        patch: &Value,
    ) -> Result<(), ActError> {
        let api = self.api::<PersistentVolumeClaim>(&owner.key);
        api.patch(claim, &patch_params(), &Patch::Strategic(patch))
            .await?;
        Ok(())
    }

    /// Makes a pod the owner of its claim.
    pub(super) async fn give_claim(&self, owner: &Owner, claim: &str, pod: &PodRef) -> Result<(), ActError> {
        let new = json!({ "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid,
            "controller": true, "blockOwnerDeletion": true });
        let patch =
            json!({ "metadata": { "ownerReferences": [new, { "$patch": "delete", "uid": owner.uid }] } });
        let api = self.api::<PersistentVolumeClaim>(&owner.key);
        match api
            .patch(claim, &patch_params(), &Patch::Strategic(&patch))
            .await
            .map_err(ActError::from)
        {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("failed to update PVC {claim}: {error}");
                self.event(owner, EventType::Warning, "FailedUpdate", message);
                Err(error)
            }
        }
    }
}

/// The patch with the pod's uid, which the server compares: a successor of the same name is left alone.
fn with_uid(patch: &PatchText, pod: &PodRef) -> Value {
    let mut patch = patch.value();
    merge(&mut patch, json!({ "metadata": { "uid": pod.uid } }));
    patch
}
