//! Carries out the plan for copies of Secrets.

use std::collections::BTreeSet;
use std::sync::Arc;

use client_kit::Seed;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};

use super::controller::Controller;
use super::held_secret::HeldSecret;
use super::secrets::{Copies, Write, copies, reference, release};
use crate::api::v1beta1::{ImagePullJob, ReferenceObject};
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
        let names = job.spec.template.pull_secrets.as_deref().unwrap_or_default();
        let namespace = job.namespace().unwrap_or_default();
        let own = &self.secrets_namespace;
        if namespace == *own {
            return Ok(Some(names.iter().map(|name| reference(own, name, "")).collect()));
        }
        let known = self.copies_seen();
        let unseen = |copy: &Arc<Secret>| self.expectations.unseen_object(copy.as_ref()).is_some();
        if known.iter().any(unseen) {
            return Ok(None);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let mut sources = Vec::new();
        for name in names {
            sources.extend(api.get_opt(name).await?);
        }
        let held = self.secrets.in_namespace(own);
        let taken: BTreeSet<String> = held.iter().map(|held| held.name_any()).collect();
        let new_name = |name: &str| new_name(name, job, &taken);
        let Copies { writes, references } = copies(own, &ObjectKey::of(job), &sources, &known, new_name);
        self.write_copies(writes).await?;
        Ok(Some(references))
    }

    /// Takes a job that is over out of the copies.
    pub(super) async fn release_secrets(&self, job: &ImagePullJob) -> Result<(), ActError> {
        self.write_copies(release(&ObjectKey::of(job), &self.copies_seen()))
            .await
    }

    /// The copies in the daemon's namespace, by name.
    fn copies_seen(&self) -> Vec<Arc<Secret>> {
        let held = self.secrets.in_namespace(&self.secrets_namespace);
        held.iter().filter_map(|held| held.secret().cloned()).collect()
    }

    async fn write_copies(&self, writes: Vec<Write>) -> Result<(), ActError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.secrets_namespace);
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
                    self.expectations.expect_object(&written);
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
fn new_name(source: &str, job: &ImagePullJob, taken: &BTreeSet<String>) -> String {
    let mut random = Seed(0).fork(&job.uid().unwrap_or_default()).fork(source).random();
    loop {
        let name = format!("{source}-{:06x}", random.below(DIGITS));
        if !taken.contains(&name) {
            return name;
        }
    }
}
