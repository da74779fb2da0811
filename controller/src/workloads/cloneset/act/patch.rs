//! Changing and deleting pods and claims.

use client_kit::EventType;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};

use super::objects::{Actor, patch_params};
use crate::api::labels;
use crate::api::v1alpha1::CloneSet;
use crate::json::merge;
use crate::kit::ObjectKey;
use crate::kit::{ActError, Kind};
use crate::pod::Pod;
use crate::workloads::cloneset::expectations::{Expected, Member};
use crate::workloads::cloneset::plan::PodRef;

/// What an update in place writes, in this order.
pub(super) struct InPlacePatches<'p> {
    /// Takes the pod out of service.
    pub(super) status: Option<&'p Value>,
    /// Changes what its containers get of the node.
    pub(super) resize: Option<&'p Value>,
    /// All the rest.
    pub(super) pod: &'p Value,
}

impl Actor {
    /// Patches a pod's status.
    pub(super) async fn patch_pod_status(
        &self,
        set: &CloneSet,
        pod: &PodRef,
        patch: &Value,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&ObjectKey::of(set));
        let written = api
            .patch_status(&pod.name, &patch_params(), &Patch::Strategic(&patch))
            .await?;
        self.expect_version(&written);
        Ok(())
    }

    /// Patches a pod.
    pub(super) async fn patch_pod(
        &self,
        set: &CloneSet,
        pod: &PodRef,
        patch: &Value,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&ObjectKey::of(set));
        let written = api
            .patch(&pod.name, &patch_params(), &Patch::Strategic(&patch))
            .await?;
        self.expect_version(&written);
        Ok(())
    }

    /// Patches what a pod's containers get of the node.
    pub(super) async fn resize_pod(
        &self,
        set: &CloneSet,
        pod: &PodRef,
        patch: &Value,
    ) -> Result<(), ActError> {
        let patch = with_uid(patch, pod);
        let api = self.api::<Pod>(&ObjectKey::of(set));
        let written: Pod = api
            .patch_subresource("resize", &pod.name, &patch_params(), &Patch::Strategic(&patch))
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
        set: &CloneSet,
        pod: &PodRef,
        patches: &InPlacePatches<'_>,
        revision: &str,
    ) -> Result<(), ActError> {
        let name = &pod.name;
        let result = async {
            if let Some(status) = patches.status {
                self.patch_pod_status(set, pod, status).await?;
            }
            if let Some(resize) = patches.resize {
                self.resize_pod(set, pod, resize).await?;
            }
            self.patch_pod(set, pod, patches.pod).await
        };
        let result = result.await;
        match &result {
            Ok(()) => {
                let message = format!("successfully update pod {name} in-place(revision {revision})");
                self.event(set, EventType::Normal, "SuccessfulUpdatePodInPlace", message);
            }
            Err(error) => {
                let message = format!("failed to update pod {name} in-place(revision {revision}): {error}");
                self.event(set, EventType::Warning, "FailedUpdatePodInPlace", message);
            }
        }
        result
    }

    /// Marks a pod to be deleted for its successor.
    pub(super) async fn recreate(
        &self,
        set: &CloneSet,
        pod: &PodRef,
        marked: bool,
        revision: &str,
    ) -> Result<(), ActError> {
        let name = &pod.name;
        if !marked {
            let patch = json!({ "metadata": { "labels": { labels::SPECIFIED_DELETE: "true" } } });
            if let Err(error) = self.patch_pod(set, pod, &patch).await {
                let message = format!(
                    "failed to patch pod specified-delete {name} for update(revision {revision}): {error}"
                );
                self.event(set, EventType::Warning, "FailedUpdatePodReCreate", message);
                return Err(error);
            }
        }
        let message =
            format!("successfully patch pod {name} specified-delete for update(revision {revision})");
        self.event(set, EventType::Normal, "SuccessfulUpdatePodReCreate", message);
        Ok(())
    }

    /// Deletes a pod, and then its claims.
    pub(super) async fn delete_pod(
        &self,
        set: &CloneSet,
        pod: &PodRef,
        claims: &[String],
    ) -> Result<(), ActError> {
        let key = ObjectKey::of(set);
        let member = Member::Pod(pod.name.clone());
        self.expectations.expect(&key, Expected::Deletion, member.clone());
        let preconditions = Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        if let Err(error) = self.api::<Pod>(&key).delete(&pod.name, &params).await {
            let error = ActError::from(error);
            self.unmet(&key, Expected::Deletion, member, &error);
            if error.kind != Kind::NotFound {
                let message = format!("failed to delete pod {}: {error}", pod.name);
                self.event(set, EventType::Warning, "FailedDelete", message);
            }
            return Err(error);
        }
        self.event(
            set,
            EventType::Normal,
            "SuccessfulDelete",
            format!("succeed to delete pod {}", pod.name),
        );
        for claim in claims {
            let member = Member::Claim(claim.clone());
            self.expectations.expect(&key, Expected::Deletion, member.clone());
            if let Err(error) = self.remove_claim(&key, claim).await {
                self.unmet(&key, Expected::Deletion, member, &error);
                if error.kind == Kind::NotFound {
                    continue;
                }
                let message = format!("failed to delete pvc {claim}: {error}");
                self.event(set, EventType::Warning, "FailedDelete", message);
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
    pub(super) async fn delete_claim(&self, set: &CloneSet, claim: &str) -> Result<(), ActError> {
        let result = self.remove_claim(&ObjectKey::of(set), claim).await;
        match result {
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            Err(error) => {
                let message = format!("failed to clean up PVC {claim}: {error}");
                self.event(set, EventType::Warning, "FailedDelete", message);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Makes a pod the owner of its claim.
    pub(super) async fn give_claim(&self, set: &CloneSet, claim: &str, pod: &PodRef) -> Result<(), ActError> {
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid,
            "controller": true, "blockOwnerDeletion": true });
        let patch =
            json!({ "metadata": { "ownerReferences": [owner, { "$patch": "delete", "uid": set.uid() }] } });
        let api = self.api::<PersistentVolumeClaim>(&ObjectKey::of(set));
        match api
            .patch(claim, &patch_params(), &Patch::Strategic(&patch))
            .await
            .map_err(ActError::from)
        {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("failed to update PVC {claim}: {error}");
                self.event(set, EventType::Warning, "FailedUpdate", message);
                Err(error)
            }
        }
    }
}

/// The patch with the pod's uid, which the server compares: a successor of the same name is left alone.
fn with_uid(patch: &Value, pod: &PodRef) -> Value {
    let mut patch = patch.clone();
    merge(&mut patch, json!({ "metadata": { "uid": pod.uid } }));
    patch
}
