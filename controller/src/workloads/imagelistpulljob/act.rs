//! The writes of lists and of their jobs.

use client_kit::EventType;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::controller::{Controller, member};
use super::plan::Work;
use crate::api::labels::REVISION_HASH;
use crate::api::v1beta1::{ImageListPullJob, ImagePullJob};
use crate::kit::expectations::Expected;
use crate::kit::{ActError, ObjectKey, OnFailure, Owner, in_batches, requests, settled};

impl Controller {
    fn api(&self, list: &ImageListPullJob) -> Api<ImageListPullJob> {
        Api::namespaced(self.client.clone(), &list.namespace().unwrap_or_default())
    }

    /// Deletes a list that has been over for as long as it may.
    pub(super) async fn remove(&self, list: &ImageListPullJob) -> Result<(), ActError> {
        let params = deletion(list.uid());
        settled(self.api(list).delete(&list.name_any(), &params).await)
    }

    /// Gives a list the hash of its template.
    pub(super) async fn label(&self, list: &ImageListPullJob, hash: &str) -> Result<(), ActError> {
        let patch = json!({ "metadata": { "uid": list.uid(), "labels": { REVISION_HASH: hash } } });
        let params = PatchParams::default();
        let patched = self
            .api(list)
            .patch(&list.name_any(), &params, &Patch::Merge(&patch))
            .await;
        settled(patched)
    }

    /// Makes and deletes jobs, and writes the status.
    ///
    /// # Errors
    /// The failures; the status is written all the same.
    pub(super) async fn work(&self, list: &ImageListPullJob, work: &Work) -> Result<(), ActError> {
        let mut errors = Vec::new();
        let create = |job| self.create(list, job);
        let created = in_batches(&work.create, OnFailure::Stop, create).await;
        errors.extend(created.into_iter().filter_map(Result::err));
        if errors.is_empty() && !work.create.is_empty() {
            self.tell(list, "create", "Create", work.create.len());
        }
        let before = errors.len();
        for (name, uid) in &work.delete {
            errors.extend(self.delete(list, name, uid).await.err());
        }
        if errors.len() == before && !work.delete.is_empty() {
            self.tell(list, "delete", "Delete", work.delete.len());
        }
        if list.status.as_ref() != Some(&work.status) {
            let api = self.api(list);
            let written = requests::write_status(&api, list, |latest| {
                latest.status = Some(work.status.clone());
            });
            errors.extend(written.await.err());
        }
        ActError::joined(errors)
    }

    fn tell(&self, list: &ImageListPullJob, deed: &str, word: &str, count: usize) {
        let reason = format!("Successful {deed} ImagePullJob");
        let message = format!("{word} {count} ImagePullJob");
        let subject = Owner::of(list).subject();
        self.recorder.event(&subject, EventType::Normal, &reason, message);
    }

    async fn create(&self, list: &ImageListPullJob, job: &Value) -> Result<(), ActError> {
        let key = ObjectKey::of(list);
        let params = PostParams::default();
        let created = requests::create::<ImagePullJob>(&self.client, &key.namespace, &params, job).await?;
        let name = created
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_seen = self.jobs.get(&ObjectKey::new(&key.namespace, name)).is_some();
        if !is_seen {
            self.expectations.expect(&key, Expected::Creation, member(name));
        }
        Ok(())
    }

    async fn delete(&self, list: &ImageListPullJob, name: &str, uid: &str) -> Result<(), ActError> {
        let key = ObjectKey::of(list);
        let api: Api<ImagePullJob> = Api::namespaced(self.client.clone(), &key.namespace);
        self.expectations.expect(&key, Expected::Deletion, member(name));
        let deleted = settled(api.delete(name, &deletion(Some(uid.to_owned()))).await);
        if deleted.is_err() {
            self.expectations.settle(&key, Expected::Deletion, member(name));
        }
        deleted
    }
}

fn deletion(uid: Option<String>) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}
