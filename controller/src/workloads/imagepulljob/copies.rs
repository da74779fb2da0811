//! Carries out what is planned for copies of Secrets.

use std::sync::Arc;

use client_kit::Seed;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt as _};

use super::controller::Controller;
use super::held_secret::HeldSecret;
use super::secrets::{Copies, Write, copies, reference, release};
use crate::api::v1beta1::{ImagePullJob, ReferenceObject};
use crate::images::SECRETS_NAMESPACE;
use crate::kit::expectations::Visible;
use crate::kit::{ActError, Kind, ObjectKey};

/// How many hexadecimal digits the names of copies end in.
const DIGITS: u64 = 0x100_0000;

impl Controller {
    /// Sees to the copies of a job's Secrets. Gives the Secrets for its nodes; a source that is missing is left out. Nothing
    /// where a copy is not in the cache yet as it was written.
    pub(super) async fn copy_secrets(
        &self,
        job: &ImagePullJob,
    ) -> Result<Option<Vec<ReferenceObject>>, ActError> {
        let names = job.spec.pull_secrets.as_deref().unwrap_or_default();
        let namespace = job.namespace().unwrap_or_default();
        if namespace == SECRETS_NAMESPACE {
            return Ok(Some(names.iter().map(|name| reference(name, "")).collect()));
        }
        let known = self.copies_seen();
        if known.iter().any(|copy| self.is_older_than_written(copy.as_ref())) {
            return Ok(None);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let mut sources = Vec::new();
        for name in names {
            sources.extend(api.get_opt(name).await?);
        }
        let new_name = |name: &str| new_name(name, job, &known);
        let Copies { writes, references } = copies(&ObjectKey::of(job), &sources, &known, new_name);
        self.write_copies(writes).await?;
        Ok(Some(references))
    }

    /// Takes a job that is over out of the copies.
    pub(super) async fn release_secrets(&self, job: &ImagePullJob) -> Result<(), ActError> {
        self.write_copies(release(&ObjectKey::of(job), &self.copies_seen()))
            .await
    }

    /// The Secrets in the daemon's namespace, by name.
    fn copies_seen(&self) -> Vec<Arc<Secret>> {
        let held = self.secrets.in_namespace(SECRETS_NAMESPACE);
        held.iter().filter_map(|held| held.secret().cloned()).collect()
    }

    /// Whether the cache has an object as it was before this controller wrote it.
    pub(super) fn is_older_than_written(&self, object: &impl Resource) -> bool {
        let (uid, version) = (&object.meta().uid, &object.meta().resource_version);
        let uid = uid.as_deref().unwrap_or_default();
        let version = version.as_deref().unwrap_or_default();
        match self.expectations.of_version(uid, version) {
            Visible::NotFor(age) if age >= crate::kit::expectations::EXPECTATION_TIMEOUT => {
                self.expectations.forget_version(uid);
                false
            }
            Visible::NotFor(_) => true,
            Visible::Yes | Visible::Doubtful => false,
        }
    }

    /// Notes the version of an object that was written.
    pub(super) fn has_written(&self, object: &impl Resource) {
        let (uid, version) = (&object.meta().uid, &object.meta().resource_version);
        let uid = uid.as_deref().unwrap_or_default();
        self.expectations
            .expect_version(uid, version.as_deref().unwrap_or_default());
    }

    async fn write_copies(&self, writes: Vec<Write>) -> Result<(), ActError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), SECRETS_NAMESPACE);
        for write in writes {
            match write {
                Write::Create(copy) => {
                    let created = api.create(&PostParams::default(), &copy).await?;
                    let key = ObjectKey::of(&created);
                    if self.secrets.get(&key).is_none()
                        && let Ok(object) = serde_json::to_value(&created)
                    {
                        self.secrets.learn(&key, Some(HeldSecret::from(object)));
                    }
                }
                Write::Update(copy) => {
                    let written = api
                        .replace(&copy.name_any(), &PostParams::default(), &copy)
                        .await?;
                    self.has_written(&written);
                }
                Write::Delete(copy) => {
                    let preconditions = Preconditions {
                        uid: copy.uid(),
                        resource_version: copy.resource_version(),
                    };
                    let params = DeleteParams {
                        preconditions: Some(preconditions),
                        ..DeleteParams::default()
                    };
                    match api
                        .delete(&copy.name_any(), &params)
                        .await
                        .map_err(ActError::from)
                    {
                        Err(error) if error.kind != Kind::NotFound => return Err(error),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// The name of a new copy: that of its source and six hexadecimal digits.
fn new_name(source: &str, job: &ImagePullJob, known: &[Arc<Secret>]) -> String {
    let mut random = Seed(0).fork(&job.uid().unwrap_or_default()).fork(source).random();
    loop {
        let name = format!("{source}-{:06x}", random.below(DIGITS));
        if known.iter().all(|copy| copy.name_any() != name) {
            return name;
        }
    }
}
