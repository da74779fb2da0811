//! Making and deleting jobs that pull images. Their failures delay no update.

use client_kit::EventType;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kruise_api::v1beta1::ImagePullJob;
use kruise_kit::{ActError, Kind, Owner};
use kube::api::{DeleteParams, Patch, PropagationPolicy};
use serde_json::{Value, json};

use super::objects::{Actor, patch_params};

impl Actor {
    /// Makes a job, unless it is there.
    pub(super) async fn create_pull_job(&self, owner: &Owner, object: &Value, image: &str) {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let key = &owner.key;
        match self.create::<ImagePullJob>(&key.namespace, object).await {
            Ok(_) => {
                let message = format!("created ImagePullJob {name} for image: {image}");
                self.event(owner, EventType::Normal, "CreatedImagePullJob", message);
            }
            Err(error) if error.kind == Kind::AlreadyExists => {}
            Err(error) => {
                let message = format!("failed to create ImagePullJob {name}: {error}");
                self.event(owner, EventType::Normal, "FailedCreateImagePullJob", message);
            }
        }
    }

    /// Deletes a job that is not needed any more.
    pub(super) async fn delete_pull_job(&self, owner: &Owner, name: &str) {
        let api = self.api::<ImagePullJob>(&owner.key);
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        if let Err(error) = api.delete(name, &params).await.map_err(ActError::from)
            && error.kind != Kind::NotFound
        {
            tracing::warn!(job = name, %error, "failed to delete an ImagePullJob");
        }
    }

    /// Labels a revision.
    pub(super) async fn mark_revision(&self, owner: &Owner, name: &str, label: &str) {
        let api = self.api::<ControllerRevision>(&owner.key);
        let patch = json!({ "metadata": { "labels": { label: "true" } } });
        if let Err(error) = api.patch(name, &patch_params(), &Patch::Strategic(&patch)).await {
            tracing::warn!(revision = name, %error, "failed to label a revision");
        }
    }
}
